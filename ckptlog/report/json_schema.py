"""The JSON Schema of the report, generated from the records themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from ckptlog.records import Report


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what ``ckptlog diagnose --format json`` prints."""
    schema = msgspec.json.schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ckptlog report",
        **schema,
    }
