"""The gate's policy: ``[gate]`` of ``ckptlog.toml``, or ``[tool.ckptlog.gate]`` of ``pyproject.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ckptlog.gate.errors import PolicyError
from ckptlog.gate.tolerance import METRIC_NAMES, parse_tolerance
from ckptlog.gate.toml_place import Step, line_of, spelled, steps
from ckptlog.query import QueryError, compile_check, compile_filter
from ckptlog.query.columns import BY_NAME
from ckptlog.query.errors import did_you_mean
from ckptlog.query.words import OUTCOMES
from ckptlog.records import FAILURES, Outcome

POLICY_FILE = "ckptlog.toml"
PYPROJECT = "pyproject.toml"

#: without a policy, or with one that does not say
DEFAULT_FAIL_ON: tuple[Outcome, ...] = (*FAILURES, "error", "unknown")


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that must hold for a log."""

    expr: Annotated[
        str, Meta(description="A condition on aggregates over the turns, such as count(failed) <= 2.")
    ]
    name: Annotated[str | None, Meta(description="What the report calls it; the expression without one.")] = (
        None
    )
    where: Annotated[
        str | None, Meta(description="A filter: only the turns for which it is true are looked at.")
    ] = None
    by: Annotated[
        str | list[str],
        Meta(
            description="A column, or several: the check must hold for each of their values, as slot or model."
        ),
    ] = []
    warn_only: Annotated[bool, Meta(description="Report it without failing the gate.")] = False
    allow_unknown: Annotated[
        bool | None,
        Meta(
            description="Judge by the turns whose values are known. Without it the gate's own setting counts."
        ),
    ] = None


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an earlier log came to, and how much worse this one may be."""

    file: Annotated[
        str | None, Meta(description="Written by ckptlog gate LOG --write-baseline FILE; beside the policy.")
    ] = None
    max_regression: Annotated[
        dict[str, int | float | str] | None,
        Meta(
            description="A figure and by how much it may be worse: a number in its own unit, or '10%' of the old value."
        ),
    ] = None
    warn_only: Annotated[bool, Meta(description="Report it without failing the gate.")] = False


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a log fails."""

    fail_on: Annotated[
        list[Outcome] | None,
        Meta(
            description="Outcomes that fail the gate; of the four failures only those that are not harmless. "
            "Without it: the four failures, error and unknown."
        ),
    ] = None
    check: Annotated[list[Check], Meta(description="Checks in the filter language.")] = []
    baseline: Baseline | None = None
    warn_only: Annotated[bool, Meta(description="Report everything without failing.")] = False
    allow_unknown: Annotated[
        bool, Meta(description="What the log does not say warns instead of failing the gate.")
    ] = False


class PolicyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of ckptlog.toml."""

    gate: Gate = Gate()


class Policy(msgspec.Struct, frozen=True):
    """A policy that has been checked. ``file`` is as it was given, None for the default policy."""

    file: str | None
    gate: Gate

    @property
    def fail_on(self) -> tuple[Outcome, ...]:
        return DEFAULT_FAIL_ON if self.gate.fail_on is None else tuple(dict.fromkeys(self.gate.fail_on))


def find_policy(file: str | None) -> Policy:
    """The policy of ``file``; without one, that of the working directory; else the default policy.

    Raises ``PolicyError`` for one that can't be used.
    """
    if file is not None:
        return load_policy(file)
    if Path(POLICY_FILE).is_file():
        return load_policy(POLICY_FILE)
    if Path(PYPROJECT).is_file() and re.search(r"^\s*\[+\s*tool\.ckptlog\b", _read(PYPROJECT), re.MULTILINE):
        return load_policy(PYPROJECT)
    return Policy(None, Gate())


def load_policy(file: str) -> Policy:
    """The policy in one TOML file; in a ``pyproject.toml`` it is below ``[tool.ckptlog]``."""
    return parse_policy(_read(file), file)


def parse_policy(text: str, file: str) -> Policy:
    """The policy in a TOML text; ``file`` is only the name for messages."""
    prefix: tuple[Step, ...] = ("tool", "ckptlog") if Path(file).name == PYPROJECT else ()
    try:
        raw: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"this is no TOML: {str(error)[:1].lower()}{str(error)[1:]}", file) from None
    except RecursionError:
        raise PolicyError("this is no TOML: nested too deeply", file) from None
    for step in prefix:
        raw = raw.get(step, {}) if isinstance(raw, dict) else {}
    checker = _Checker(text, file, prefix)
    gate = checker.typed(raw).gate
    checker.meaning(gate)
    return Policy(file, gate)


def policy_schema() -> dict[str, Any]:
    """The JSON Schema of ``ckptlog.toml``, made from the same structs that read it."""
    schema = msgspec.json.schema(PolicyFile)
    metrics = {name: {"type": ["number", "string"]} for name in METRIC_NAMES}
    regression = schema["$defs"]["Baseline"]["properties"]["max_regression"]
    for option in regression["anyOf"]:
        if option.get("type") == "object":
            option |= {"properties": metrics, "additionalProperties": False}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ckptlog.toml", **schema}


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"can't be read: {(error.strerror or str(error)).lower()}", file) from None
    except (UnicodeDecodeError, ValueError):
        raise PolicyError("can't be read: it is not UTF-8", file) from None


#: the keys that a table may have, by the table's path without indices
_KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): PolicyFile.__struct_fields__,
    ("gate",): Gate.__struct_fields__,
    ("gate", "check"): Check.__struct_fields__,
    ("gate", "baseline"): Baseline.__struct_fields__,
}
_TYPE_NAMES = {
    "array": "a list",
    "object": "a table",
    "str": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "null": "nothing",
}


class _Checker:
    """Turns whatever is wrong with a policy into one sentence with the key and its line."""

    def __init__(self, text: str, file: str, prefix: tuple[Step, ...]) -> None:
        self.text = text
        self.file = file
        self.prefix = prefix

    def error(self, reason: str, path: list[Step], details: tuple[str, ...] = ()) -> PolicyError:
        full = [*self.prefix, *path]
        return PolicyError(reason, self.file, spelled(full), line_of(self.text, full), details)

    def typed(self, raw: Any) -> PolicyFile:
        try:
            return msgspec.convert(raw, PolicyFile)
        except msgspec.ValidationError as error:
            raise self.translated(str(error), raw) from None

    def translated(self, message: str, raw: Any) -> PolicyError:
        """msgspec's message in this project's words."""
        what, _, where = message.partition(" - at `")
        path = steps(where.rstrip("`"))
        table = tuple(step for step in path if isinstance(step, str))
        if match := re.fullmatch(r"Object contains unknown field `(.*)`", what):
            near = did_you_mean(match[1], _KEYS.get(table, ()))
            return self.error(f"unknown key{near}", [*path, match[1]])
        if match := re.fullmatch(r"Object missing required field `(.*)`", what):
            return self.error(f"the key {match[1]} is missing", path)
        if match := re.fullmatch(r"Invalid enum value '(.*)'", what):
            return self.error(f"there is no outcome '{match[1]}'{did_you_mean(match[1], OUTCOMES)}", path)
        if match := re.fullmatch(r"Expected `(.*)`, got `(.*)`", what):
            types = [t for t in match[1].split(" | ") if t != "null"]
            if "float" in types and "int" in types:
                types.remove("int")
            wanted = " or ".join(_TYPE_NAMES.get(t, t) for t in types)
            return self.error(f"should be {wanted}, not {_TYPE_NAMES.get(match[2], match[2])}", path)
        return self.error(what[:1].lower() + what[1:], path)

    def meaning(self, gate: Gate) -> None:
        """What types can't say: expressions, columns, figures."""
        names: dict[str, int] = {}
        for i, check in enumerate(gate.check):
            at: list[Step] = ["gate", "check", i]
            self.expression(compile_check, check.expr, [*at, "expr"])
            if check.where is not None:
                self.expression(compile_filter, check.where, [*at, "where"])
            for column in group_columns(check):
                if column not in BY_NAME:
                    reason = f"there is no column {column}{did_you_mean(column, BY_NAME)}"
                    raise self.error(reason, [*at, "by"])
            if check.name is not None:
                if not check.name.strip():
                    raise self.error("a name can't be empty", [*at, "name"])
                if check.name in names:
                    raise self.error(f"gate.check[{names[check.name]}] has the same name", [*at, "name"])
                names[check.name] = i
        if gate.baseline is not None:
            self.baseline(gate.baseline)

    def expression(self, compile_: Any, text: str, path: list[Step]) -> None:
        try:
            compile_(text)
        except QueryError as error:
            raise self.error(str(error), path, error.details) from None

    def baseline(self, baseline: Baseline) -> None:
        for name, value in (baseline.max_regression or {}).items():
            path: list[Step] = ["gate", "baseline", "max_regression"]
            if name not in METRIC_NAMES:
                near = did_you_mean(name, METRIC_NAMES)
                raise self.error(f"there is no figure {name} to compare{near}", [*path, name])
            if parse_tolerance(value) is None:
                shown = f"'{value}'" if isinstance(value, str) else f"{value}"
                raise self.error(
                    f"{shown} is neither a number from 0 nor a percentage like '10%'", [*path, name]
                )


def group_columns(check: Check) -> tuple[str, ...]:
    """The columns of ``by``, each once."""
    return tuple(dict.fromkeys([check.by] if isinstance(check.by, str) else check.by))
