"""``--redact``: a report that can be posted in public.

Prompt text, file paths, addresses, hosts and model names become placeholders; the same thing is
the same placeholder everywhere, so ``<text-2>`` can still be followed through the report.
Everything else, and above all every figure, stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ckptlog.intake.loggers import LOGGERS
from ckptlog.records import (
    Evidence,
    Fix,
    IncidentRecord,
    MismatchRecord,
    Report,
    RunRecord,
    SourceRecord,
    TurnRecord,
)
from ckptlog.report.safe import shorten

#: what stands before a message: a wrapper's date, host and process, then the server's own stamp
_WRAPPER = re.compile(
    rf"^.{{0,200}}?(?=\d+\.\d\d\.\d{{3}}\.\d{{3}} [IWED] |(?:{'|'.join(LOGGERS)}) {{1,2}}\S)", re.DOTALL
)
#: a journal's date and host before the process's name
_JOURNAL = re.compile(r"^[A-Z][a-z]{2} +\d+ \d+:\d+:\d+(?:\.\d+)? \S+ (?=\S+?\[\d+\]: )")
_DUMP = re.compile(r"\b(old|new): \.\.\. ?(.*)$", re.DOTALL)
#: messages that carry requests, answers, prompts or templates
_BODY = re.compile(
    r"((?<!done )request:|response:|body:|prompt:|launching slot\s*:|next token:|conv_id\s*=|example_format:|Template:"
    r"|Parsing|Parsed message|grammar:|content:|what\(\):)(.*)$",
    re.DOTALL | re.IGNORECASE,
)
_QUOTED = re.compile(r"""(?<![\w'"])(["'])(?=\S)([^"']+)\1(?!\w)""")
_DOUBLE_QUOTED = re.compile(r"""(?<![\w"])(")([^"]+)"(?!\w)""")
_URL = re.compile(r"\b(https?|wss?|tcp)://([^\s/'\"<>)]+)([^\s'\"<>)]*)")
#: the server's own link in "forcing full prompt re-processing"
_PUBLIC_HOST = "github.com"
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])(?! [IWED] )")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?)(?![\w:])"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
#: endpoints of the server look like paths and say nothing about anyone
_ENDPOINT = re.compile(
    r"/(?:v1|slots(?!/\D)|health|props|metrics|completions?|infill|tokenize|detokenize|embeddings?|rerank|api)\b"
)
#: a space may stand inside a folder's name, so only before a further slash
_UNIX_PATH = re.compile(
    r"""(?<![\w/<.])(?:~|\.{1,2})?/(?:[^\s/'"<>|]+(?: [^\s/'"<>|]+){0,3}/)*[^\s/'"<>|,;:)]+"""
)
_WINDOWS_PATH = re.compile(r"(?<![\w\\])(?:[A-Za-z]:[\\/]|\\\\)[^\s'\"<>|]+")
_FILE_NAME = re.compile(
    r"(?<![\w<>/.+-])(?:[\w.+-]+/)*[\w.+-]+\.(?:gguf|bin|safetensors|jinja|json|log|txt)\b", re.IGNORECASE
)
#: the keys of a JSON line: those that hold the message, and all that --log-jsonl, Docker and others write
_MESSAGE_KEYS = frozenset({"msg", "message", "log", "MESSAGE"})
_LOG_KEYS = _MESSAGE_KEYS | {"type", "time", "level", "ts", "timestamp", "stream", "function", "line", "tid"}
_LOG_WORD = re.compile(r"log|debug|info|warn|warning|error|stdout|stderr|[\d.:TZ+-]*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<[a-z]+-\d+>")
#: behind these stands what a request was answered with, or a piece of a template
_ANSWER = re.compile(r"got exception:|, error:|http client error:|chat template parsing error:")
#: the address that a server could not have
_ADDRESS = re.compile(r"(?:couldn't bind HTTP server socket, hostname:|couldn't start HTTP listener on) *([^\s,]+)")
#: a file's name as libllama prints it: without quotes, and any text may be in it
_OPENING = re.compile(r"(?<=failed to open )(?![\"'<]|GGUF file)(.+)(?=: )")
#: a log line may be megabytes; a report that is to be posted needs no more of it than this
_LINE_LIMIT = 2000


class _Placeholders:
    """Hands out ``<kind-n>``, the same for the same thing."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def name(self, kind: str, thing: str) -> str:
        key = (kind, thing)
        if key not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[key] = f"<{kind}-{self._counts[kind]}>"
        return self._names[key]


class _Redactor:
    def __init__(self, report: Report) -> None:
        self._placeholders = _Placeholders()
        #: literal strings known to be private, with their placeholders, the longest first
        literals: dict[str, str] = {}
        for source in report.sources:
            name = self._placeholders.name("log", source.path)
            literals[source.path] = name
            literals.setdefault(_base_name(source.path), name)
        for run in report.runs:
            if run.model:
                name = self._placeholders.name("model", run.model)
                base = _base_name(run.model)
                for spelling in (run.model, base, base.rsplit(".", 1)[0]):
                    literals.setdefault(spelling, name)
        for turn in report.turns:
            for text in (turn.mismatch.old, turn.mismatch.new) if turn.mismatch else ():
                # shorter texts would be replaced in the middle of words
                if text and len(text.strip()) >= 4:
                    literals.setdefault(text, self._placeholders.name("text", text))
        self._literals = {text: name for text, name in literals.items() if len(text) > 1}
        ordered = sorted(self._literals, key=len, reverse=True)
        self._known = re.compile("|".join(re.escape(text) for text in ordered)) if ordered else None

    def prompt(self, text: str | None) -> str | None:
        """A piece of a prompt: nothing of it may stay."""
        return self._placeholders.name("text", text) if text else text

    def words(self, text: str, quotes_server: bool = False) -> str:
        """A sentence of ckptlog's own. What it names of the log is known from the records; what stands
        in quotes is its own advice (``"n_keep": -1``), unless it ``quotes_server``."""
        text = self._names(shorten(text, _LINE_LIMIT))
        return self._quoted(text, _DOUBLE_QUOTED) if quotes_server else text

    def line(self, text: str) -> str:
        """A line of the log: the wrapper goes, dumps and bodies become placeholders."""
        fields = _json_line(text)
        if fields is not None:
            return msgspec.json.encode({key: self._field(key, fields[key]) for key in fields}).decode()
        text = shorten(text, _LINE_LIMIT)
        wrapper = _WRAPPER.match(text)
        if wrapper:
            text = text[wrapper.end() :]
        return self.said(_JOURNAL.sub("", text))

    def said(self, text: str) -> str:
        """What the server said, without what stands before it: dumps and bodies become placeholders."""
        text = shorten(text, _LINE_LIMIT)
        for pattern in (_DUMP, _BODY):
            found = pattern.search(text)
            if found and found[2].strip():
                text = f"{text[: found.start(2)]}{self._placeholders.name('text', found[2])}"
        text = _OPENING.sub(self._replacing("path"), text)
        return self._quoted(self._names(text), _QUOTED)

    def _field(self, key: str, value: object) -> object:
        """A value of a JSON line: the message as any line, the log's own short words as they are."""
        if isinstance(value, str):
            if key in _MESSAGE_KEYS:
                return self.line(value)
            return value if _LOG_WORD.fullmatch(value) else self.prompt(value)
        return value if isinstance(value, int | float | None) else self.prompt(str(value))

    def server(self, name: str | None) -> str | None:
        """What a wrapper calls a server: a container's, a host's name."""
        return self._placeholders.name("server", name) if name else name

    def without_answer(self, text: str) -> str:
        """A line of the log without what an answer says in it."""
        found = _ANSWER.search(text)
        return text if found is None else f"{text[: found.end()]} {self._placeholders.name('text', text[found.end() :])}"

    def of_server(self, message: str | None, text: str) -> tuple[str | None, str]:
        """Words of the server's on itself, and the line that they stand on."""
        if "chat template parsing error:" in text:
            return self.prompt(message), self.line(self.without_answer(text))
        found = _ADDRESS.search(text)
        if found is not None and _IPV4.fullmatch(found[1]) is None:
            name = self._placeholders.name("host", found[1])
            message = message and message.replace(found[1], name)
            text = f"{text[: found.start(1)]}{name}{text[found.end(1) :]}"
        return self.said(message or "") or None, self.line(text)

    def path(self, text: str) -> str:
        return self._literals.get(text) or self._placeholders.name("log", text)

    def model(self, text: str | None) -> str | None:
        return self._placeholders.name("model", text) if text else text

    def _quoted(self, text: str, pattern: re.Pattern[str]) -> str:
        def replace(found: re.Match[str]) -> str:
            if _PLACEHOLDER.fullmatch(found[2]):
                return found[0]
            return f"{found[1]}{self._placeholders.name('text', found[2])}{found[1]}"

        return pattern.sub(replace, text)

    def _names(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(lambda found: self._literals[found[0]], text)
        text = _URL.sub(self._url, text)
        for kind, pattern in (
            ("mail", _EMAIL),
            ("ip", _IPV4),
            ("ip", _IPV6),
            ("path", _WINDOWS_PATH),
            ("path", _UNIX_PATH),
            ("path", _FILE_NAME),
        ):
            text = pattern.sub(self._replacing(kind), text)
        return text

    def _replacing(self, kind: str) -> Callable[[re.Match[str]], str]:
        def replace(found: re.Match[str]) -> str:
            if kind == "path" and _ENDPOINT.match(found[0]):
                return found[0]
            # the link of the server's own message has been let through
            if kind == "path" and found.string[: found.start()].endswith(_PUBLIC_HOST):
                return found[0]
            return self._placeholders.name(kind, found[0])

        return replace

    def _url(self, found: re.Match[str]) -> str:
        if found[2] == _PUBLIC_HOST and found[3].startswith("/ggml-org/llama.cpp/"):
            return found[0]
        return f"{found[1]}://{self._placeholders.name('host', found[2])}"


def _json_line(text: str) -> dict[str, object] | None:
    """A line of ``--log-jsonl`` or of a wrapper as its fields; None for any other line."""
    if not text.startswith("{"):
        return None
    try:
        fields = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError:
        return None
    return fields if fields.keys() & _MESSAGE_KEYS and fields.keys() <= _LOG_KEYS else None


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def redacted(report: Report) -> Report:
    """A copy of ``report`` without private text; the report itself is left as it is."""
    redactor = _Redactor(report)
    replace = msgspec.structs.replace

    def source(record: SourceRecord) -> SourceRecord:
        return replace(record, path=redactor.path(record.path))

    def incident(record: IncidentRecord) -> IncidentRecord:
        text, message = record.text, record.message
        match record.kind:
            case "request-failed":  # the server's words may quote the request
                message, text = redactor.prompt(message), redactor.line(redactor.without_answer(text))
            case "model-unloaded":
                name = redactor.words(message or "")
                if message and name == message:
                    name = redactor.model(message) or ""
                message, text = name or None, redactor.line(text.replace(f"name={message}", f"name={name}"))
            case _:
                message, text = redactor.of_server(message, text)
        return replace(record, message=message, text=text)

    def run(record: RunRecord) -> RunRecord:
        return replace(
            record,
            model=redactor.model(record.model),
            server=redactor.server(record.server),
            incidents=[incident(item) for item in record.incidents],
        )

    def fix(record: Fix) -> Fix:
        return replace(
            record, text=redactor.words(record.text), flags=[redactor.words(f) for f in record.flags]
        )

    def evidence(record: Evidence) -> Evidence:
        return replace(record, text=redactor.line(record.text), says=redactor.words(record.says))

    def mismatch(record: MismatchRecord | None) -> MismatchRecord | None:
        if record is None:
            return None
        return replace(record, old=redactor.prompt(record.old), new=redactor.prompt(record.new))

    def turn(record: TurnRecord) -> TurnRecord:
        # what the server said of an error may repeat what a client sent
        quotes = record.outcome == "error"
        return replace(
            record,
            mismatch=mismatch(record.mismatch),
            evidence=[evidence(item) for item in record.evidence],
            fixes=[fix(item) for item in record.fixes],
            not_fixes=[fix(item) for item in record.not_fixes],
            headline=redactor.words(record.headline, quotes),
            explanation=redactor.words(record.explanation, quotes),
            missing=[redactor.words(sentence) for sentence in record.missing],
        )

    return replace(
        report,
        sources=[source(record) for record in report.sources],
        runs=[run(record) for record in report.runs],
        turns=[turn(record) for record in report.turns],
        warnings=[redactor.words(sentence) for sentence in report.warnings],
    )
