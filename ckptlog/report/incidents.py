"""What happened outside of turns, in sentences; the words of the log in them are not made safe yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ckptlog.records import IncidentRecord, Report, RunRecord
from ckptlog.report.words import plural

#: kinds that end a server
ENDS = ("start-failed", "server-ended")
#: of a kind that is told one by one
_EACH = 3


def incident_notes(report: Report) -> Iterator[str]:
    """What a person must be told of beside the turns, a note or two a kind."""
    found = [(run, each) for run in report.runs for each in run.incidents]
    for kind in (*ENDS, "slot-file-failed"):
        these = [(run, each) for run, each in found if each.kind == kind]
        for run, each in these[:_EACH]:
            yield _one(report, run, each)
        if len(these) > _EACH:
            yield f"And {plural(sum(each.count for _, each in these[_EACH:]), 'more')} like that."
    unloaded = [each for _, each in found if each.kind == "model-unloaded"]
    if unloaded:
        times = Counter[str]()
        for each in unloaded:
            times[each.message or "a model"] += each.count
        named = [f"{name} {_times(n)}" for name, n in times.most_common(_EACH)]
        whose = ", ".join([*named, *(["others"] if len(times) > _EACH else [])])
        yield (
            f"The router ended the servers of models to make room for others (--models-max): {whose} (line {unloaded[0].lines[0]}"
            f"{' and later' if sum(times.values()) > 1 else ''}). What their slots held was gone then, and the next prompt was "
            "read from the start; a larger --models-max keeps more models at a time."
        )
    failed = failed_requests(report)
    if len(failed) == 1 and failed[0][1].count == 1:
        yield _one(report, *failed[0])
    elif failed:
        total = sum(each.count for _, each in failed)
        yield (
            f"{plural(total, 'request')} were answered with an error and reached no slot, so that no turn tells of them: they "
            "stand at the end."
        )


def ends(report: Report) -> list[str]:
    """Servers that did not start or went down outside of any turn, a sentence each, without the full stop."""
    return [
        _one(report, run, each).rstrip(".")
        for run in report.runs
        for each in run.incidents
        if each.kind in ENDS
    ]


def failed_requests(report: Report) -> list[tuple[RunRecord, IncidentRecord]]:
    """Requests without a turn."""
    return [(run, each) for run in report.runs for each in run.incidents if each.kind == "request-failed"]


def failed_request_words(report: Report, most: int) -> list[str]:
    """Requests that failed without a turn, ``most`` of them one by one: where, how often, what the server answered; empty
    for a single one, of which the notes tell all."""
    failed = failed_requests(report)
    if sum(each.count for _, each in failed) < 2:
        return []
    words = [_request_words(report, run, each) for run, each in failed[:most]]
    return words if len(failed) <= most else [*words, f"and {plural(len(failed) - most, 'other error')}"]


def _request_words(report: Report, run: RunRecord, incident: IncidentRecord) -> str:
    often = f" ({incident.count:,} times)" if incident.count > 1 else ""
    return f"{_where(report, run, incident)}{often}: {_status(incident)}{incident.message or 'an error'}"


def _one(report: Report, run: RunRecord, incident: IncidentRecord) -> str:
    often = f", {incident.count:,} times" if incident.count > 1 else ""
    return incident_sentence(incident, f"{_where(report, run, incident)}{often}")


def incident_sentence(incident: IncidentRecord, where: str) -> str:
    """What happened, where, in the server's own words, and what to do."""
    words = f" {_status(incident)}{incident.message}" if incident.message else ""
    first, mark, rest = incident.says.partition(". ")
    return f"{first.removesuffix('.')} ({where}){':' if words else '.'}{words}{f'{_stop(words)} {rest}' if mark else ''}"


def _status(incident: IncidentRecord) -> str:
    return f"HTTP {incident.status}: " if incident.status is not None else ""


def _stop(words: str) -> str:
    return "" if not words or words.endswith(".") else "."


def _where(report: Report, run: RunRecord, incident: IncidentRecord) -> str:
    of = f" of {report.sources[run.source].path}" if len(report.sources) > 1 else ""
    return f"line {incident.lines[0]:,}{of}"


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")
