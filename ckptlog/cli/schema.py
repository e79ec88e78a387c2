"""``ckptlog schema``."""

from __future__ import annotations

from ckptlog.cli.common import OutputOption, deliver


def schema(output: OutputOption = None) -> None:
    """Print the JSON Schema of the report that `ckptlog diagnose --format json` makes.

    \b
    Examples:
      ckptlog schema -o ckptlog.schema.json
      ckptlog diagnose server.log --format json | check-jsonschema --schemafile ckptlog.schema.json -
    """
    from ckptlog.report.as_json import encode_json
    from ckptlog.report.json_schema import report_schema

    deliver(encode_json(report_schema()), output)
