"""JUnit XML: a suite a log, a case a check, so that CI shows which one failed."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

from ckptlog.gate.text import like_turns
from ckptlog.gate.verdict import CheckVerdict, GateVerdict, LogVerdict
from ckptlog.report.safe import safe_text

#: what XML 1.0 can't hold at all; everything else that steers a terminal is escaped by safe_text
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(verdict: GateVerdict) -> bytes:
    """The XML document. There are no times in it: the same logs give the same bytes."""
    root = ET.Element("testsuites", name="ckptlog gate")
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for log in verdict.logs:
        for name, value in _suite(root, log).items():
            totals[name] += value
    for name, value in totals.items():
        root.set(name, str(value))
    ET.indent(root)
    stream = io.BytesIO()
    ET.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)
    return stream.getvalue() + b"\n"


def _suite(root: ET.Element, log: LogVerdict) -> dict[str, int]:
    suite = ET.SubElement(root, "testsuite", name=_text(log.path))
    counts = {"tests": 0, "failures": 0, "errors": 0}
    if not log.checks:
        counts = {"tests": 1, "failures": 0, "errors": int(log.status in ("error", "nothing"))}
        case = ET.SubElement(suite, "testcase", classname=_text(log.path), name="readable")
        if counts["errors"]:
            kind = "unreadable" if log.status == "error" else "nothing-to-judge"
            ET.SubElement(case, "error", message=_text(log.message), type=kind).text = _text(log.message)
    for check in log.checks:
        counts["tests"] += 1
        counts["failures"] += check.status == "failed"
        case = ET.SubElement(suite, "testcase", classname=_text(log.path), name=_text(check.name))
        if check.turns:
            case.set("file", _text(log.path))
            case.set("line", str(check.turns[0].line))
        if check.status == "failed":
            failure = ET.SubElement(case, "failure", message=_text(check.message), type=_text(check.id))
            failure.text = _body(check)
        elif check.status == "warning":
            ET.SubElement(case, "system-out").text = f"warning: {_body(check)}"
    for name, value in counts.items():
        suite.set(name, str(value))
    if log.notes or log.checks:
        ET.SubElement(suite, "system-out").text = "\n".join(_text(line) for line in (log.message, *log.notes))
    return counts


def _body(check: CheckVerdict) -> str:
    lines = [check.message]
    for group in like_turns(check):
        named = ", ".join(f"{turn.turn} (line {turn.line})" for turn in group)
        lines.append(f"turn {named}: {group[0].says}")
        lines += [f"  line {pointer.line}: {pointer.says}" for pointer in group[0].evidence]
        lines += [f"  do: {group[0].do}"] if group[0].do else []
    more = check.turns_total - len(check.turns)
    lines += [f"and {more} more turns"] if more else []
    lines += [check.hint] if check.hint else []
    return "\n".join(_text(line) for line in lines)


def _text(text: str) -> str:
    return _NOT_XML.sub("�", safe_text(text))
