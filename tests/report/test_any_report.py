"""Whatever figures and texts a report holds, every renderer copes."""

from __future__ import annotations

import json
from typing import Any, get_args

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ckptlog import records
from ckptlog.records import Evidence, Fix, MismatchRecord, Report, ShiftRecord, TurnCheckpoints, TurnRecord
from ckptlog.report.as_json import render_json
from ckptlog.report.json_schema import report_schema
from ckptlog.report.markdown import render_markdown
from ckptlog.report.redact import redacted
from ckptlog.report.safe import safe_text
from ckptlog.report.text import render_text

from .build import HOSTILE, a_report, a_run, a_source

_text = st.text(max_size=60) | st.just(HOSTILE)
_count = st.none() | st.integers(0, 10**7) | st.integers(0, 40)
_ms = st.none() | st.floats(0, 1e9)
_tokens = st.lists(st.integers(0, 10**6), max_size=4)
_word = st.none() | st.sampled_from(["checkpoint-evicted", "slot-taken", "prefix-rewritten", "a-new-word"])
_fix = st.builds(Fix, _text, _text, st.lists(_text | st.sampled_from(["--ctx-checkpoints", "4"]), max_size=3))


def _a(kind: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(kind))


_turn = st.builds(
    TurnRecord,
    source=st.integers(0, 2),
    run=st.integers(0, 2),
    slot=st.none() | st.integers(0, 20),
    task=_count,
    child_of=st.none() | st.integers(0, 9),
    lines=st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)),
    t_start=_ms,
    t_end=_ms,
    ended=_a(records.Ended),
    outcome=_a(records.Outcome),
    severity=st.sampled_from(["harmless", "costly", None]),
    failed=st.booleans(),
    also=st.lists(_a(records.Outcome), max_size=2),
    variant=st.none() | st.sampled_from(["full", "partial", "head", "a-new-word"]),
    trigger=_word,
    cause=_word,
    confidence=_a(records.Basis),
    n_prompt=_count,
    n_common=_count,
    n_common_slot=_count,
    n_common_range=st.none() | st.tuples(st.integers(0, 99), st.integers(99, 999)),
    n_known=_count,
    n_cached=_count,
    n_processed=_count,
    n_generated=_count,
    n_lost=_count,
    truncated=st.none() | st.booleans(),
    prompt_ms=_ms,
    generation_ms=_ms,
    lost_ms=_ms,
    basis=st.just({}),
    mismatch=st.none() | st.builds(MismatchRecord, _count, st.none() | _text, st.none() | _text),
    checkpoints=st.none() | st.builds(TurnCheckpoints, _tokens, _tokens),
    shifts=st.lists(
        st.builds(
            ShiftRecord,
            *[st.integers(0, 99)] * 4,
            st.tuples(st.integers(0, 9), st.integers(9, 99)),
            st.none() | st.just("head"),
        ),
        max_size=2,
    ),
    evidence=st.lists(st.builds(Evidence, st.integers(0, 3), st.integers(1, 99), _text, _text), max_size=8),
    fixes=st.lists(_fix, max_size=6),
    not_fixes=st.lists(_fix, max_size=3),
    headline=_text,
    explanation=_text,
    missing=st.lists(_text, max_size=3),
)

_run = st.builds(
    a_run,
    run=st.integers(0, 2),
    source=st.integers(0, 2),
    build=st.none() | _text,
    build_min=st.none() | st.integers(0, 12000),
    build_max=st.none() | st.integers(0, 12000),
    model=st.none() | _text,
    arch=st.none() | _text,
    memory=_a(records.Memory),
    n_slots=st.none() | st.integers(0, 99),
    n_ctx_slot=st.none() | st.integers(0, 10**6),
    verbosity=st.none() | st.integers(0, 5),
    port=st.none() | st.integers(1, 65535),
)

_report = st.builds(
    a_report,
    st.lists(_turn, max_size=8),
    st.lists(_run, max_size=4),
    st.lists(st.builds(a_source, _text, wrapper=st.none() | _text, lines=st.integers(0, 10**9)), max_size=4),
)

_SCHEMA = jsonschema.Draft202012Validator(report_schema())


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(_report, st.sampled_from([40, 57, 80, 100]))
def test_any_report_can_be_told(report: Report, width: int) -> None:
    for told in (report, redacted(report)):
        for line in render_text(told, width):
            assert cell_len(line.plain) <= width
            assert safe_text(line.plain) == line.plain
        text = render_markdown(told)
        assert all(safe_text(line) == line for line in text.split("\n"))
        _SCHEMA.validate(json.loads(render_json(told)))
