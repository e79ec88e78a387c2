"""The tagged form as JSON (the default of builds of early 2024; ``--log-format json`` of ik_llama.cpp, llamafile)."""

from __future__ import annotations

import json

from ckptlog.intake.json_lines import Json

#: what stands in the brackets, not in the tail
_NOT_IN_TAIL = frozenset({"msg", "level", "function", "line"})


def is_tagged(record: Json) -> bool:
    """Did a llama-server write it (other loggers have a ``msg`` as well)?"""
    return isinstance(record.value("function"), str) and isinstance(record.value("line"), int) and "timestamp" in record.names


def as_tagged(record: Json) -> str:
    """The record's message with its keys, as the tagged form prints them."""
    tail = " ".join(f"{key}={_printed(record.value(key))}" for key in record.names if key not in _NOT_IN_TAIL)
    return f"{record.value('msg')} | {tail}"


def _printed(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
