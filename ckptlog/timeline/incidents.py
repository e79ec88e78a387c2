"""What happens outside of any turn and is noticed by whoever uses the server: kept by run, alike ones together."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ckptlog.events import Event
from ckptlog.records import Ended, IncidentKind
from ckptlog.timeline.last_words import crash_of
from ckptlog.timeline.limits import MAX_INCIDENTS, MAX_START_ERRORS, MAX_WORDS
from ckptlog.timeline.model import Incident, Quote, Run

#: libllama's words on a model, and on a slot's file, that can't be read
LOAD_ERROR = "model_load_error"
OF_FILES = frozenset({LOAD_ERROR, "state_file_error"})

#: a start's errors by how much they tell of the reason, by the grammar's wording
_TELLING = (
    "bind", "listener", "template", "opening", "loading", "multimodal", "draft", "speculative", "router", "on_startup", "model",
    "mtp_context", "draft_context", "speculator", "context", "http",
)  # fmt: skip
#: those that only say that it is over, the beginning of their wording
_OVER = "exiting"

#: those that say why a file could not be read, and not what for
OF_LIBRARY = frozenset({"opening", "loading"})


def tell(run: Run, incident: Incident) -> None:
    """One more; of too many different ones the later are counted without their words."""
    if incident.message is not None:
        incident.message = shortened(incident.message)
    incident.text = incident.text[:MAX_WORDS]
    known = _like(run, incident)
    if known is None and len(run.incidents) >= MAX_INCIDENTS:
        incident.message = incident.status = None
        known = _like(run, incident)
    if known is None:
        run.incidents.append(incident)
    else:
        known.count += 1
        known.last_line = incident.line


def shortened(text: str) -> str:
    """Its beginning, in one line."""
    return " ".join(text[:MAX_WORDS].split()) + (" ..." if len(text) > MAX_WORDS else "")


def _like(run: Run, new: Incident) -> Incident | None:
    """The incident of the run that the new one only repeats."""
    what = (new.kind, new.how, new.message, new.status)
    return next((old for old in run.incidents if (old.kind, old.how, old.message, old.status) == what), None)


def take_start_error(run: Run, incident: Incident) -> None:
    """A line that may tell why the server does not start; some are tried again, and then it does."""
    if len(run.start_errors) < MAX_START_ERRORS:
        run.start_errors.append(incident)


def says_over(wording: str) -> bool:
    """Does an error of the start say that the process ends for it?"""
    return wording.startswith(_OVER)


def _tells(error: Incident) -> int:
    """The place of an error of the start among the others, the most telling first."""
    how = error.how or ""
    if how in _TELLING:
        return _TELLING.index(how)
    return len(_TELLING) + says_over(how)


def take_file_error(run: Run, e: Event) -> None:
    """What libllama says of a file; the server's own error follows, if it is one of the server's."""
    reason = "it is no slot's file" if e.of.wording == "magic" else str(e.f.get("reason") or "")
    if e.kind != LOAD_ERROR:
        run.file_error = Quote(e.line, reason)
        return
    words = f"failed to open {reason}" if e.of.wording == "opening" else reason
    take_start_error(run, incident("start-failed", e.line, e.text, message=words, how=e.of.wording))


def start_over(run: Run) -> None:
    """The process ends, or says that it does: it did not start if something had failed, and nothing was loaded."""
    if run.start_errors and not run.loaded and not run.n_turns:
        errors = sorted(run.start_errors, key=_tells)
        own = [each for each in errors if each.how not in OF_LIBRARY]
        if own:
            last = max(each.last_line for each in errors)
            # what the server could not do, in the words of whoever knows why
            tell(run, msgspec.structs.replace(errors[0], last_line=last, how=own[0].how))
    run.start_errors = []


def process_over(run: Run, why: Ended) -> None:
    """The process is over, and no turn was at work: by a crash, as far as something says so, or nothing does."""
    words = crash_of(run)
    if not words and why == "restart" and run.model is not None and not (run.loaded or run.n_turns or run.stop or run.incidents):
        tell(run, Incident("start-failed", run.last_line, run.last_line, "", how="unsaid"))
    if not words and why == "restart" and run.says_stops and run.n_releases and (run.stop is None or run.stop_turns != run.n_turns):
        tell(run, Incident("server-ended", run.last_line, run.last_line, "", how="unsaid"))
    if not words or (run.stopped is not None and run.stopped <= words[0].line and run.stopped > run.last_line):
        return
    if any(known.kind == "start-failed" for known in run.incidents):
        return
    run.last_words = []
    first = min(words, key=lambda word: word.line)
    tell(run, Incident("server-ended", first.line, max(word.line for word in words), words[0].text, words=words))


class _Answer(msgspec.Struct):
    """The body of an answer that tells of an error."""

    code: int | None = None
    message: str | None = None


class _Enclosed(msgspec.Struct):
    error: _Answer


@lru_cache(maxsize=64)
def answer_of(text: str) -> tuple[int | None, str | None]:
    """HTTP status and words of an exception as the server prints it: the body of its answer, or the words alone."""
    text = text.strip()
    try:
        answer = msgspec.json.decode(text, type=_Enclosed).error
    except msgspec.MsgspecError:
        try:
            answer = msgspec.json.decode(text, type=_Answer)
        except msgspec.MsgspecError:
            answer = _Answer()
    return answer.code, answer.message or text or None


def incident(kind: IncidentKind, line: int, text: str | None, **more: object) -> Incident:
    """A new one, of one line."""
    return Incident(kind, line, line, text or "", **more)  # type: ignore[arg-type]
