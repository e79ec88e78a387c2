"""What a parse gives back: fields with their spans, refusals that say where and why; hostile text is data."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from ckptlog.grammar import Field, Refused, messages

CREATED = "created context checkpoint 1 of 32 (pos_min = 0, pos_max = 531, n_tokens = 532, size = 7.506 MiB)"


def test_fields_and_spans() -> None:
    message = messages().parse(CREATED)
    assert (message.kind, message.wording) == ("created_checkpoint", "n_tokens")
    assert (message.build_min, message.build_max) == (7965, None)
    assert list(message.fields) == ["index", "max", "pos_min", "pos_max", "n_tokens", "size_mib"]
    assert message.fields["n_tokens"] == Field("532", 75, 78)
    for field in message.fields.values():
        assert CREATED[field.start : field.end] == field.text


@pytest.mark.parametrize(
    "text",
    [
        "n_gen =    120, tg =  38.91 t/s, tg_3s =  39.02 t/s",
        "n_gen = 120, tg = 38.91 t/s, tg_3s = 39.02 t/s",
        "  n_gen=120,tg=38.91t/s,tg_3s=39.02t/s",
    ],
)
def test_padding_does_not_matter(text: str) -> None:
    message = messages().parse(text)
    assert message.wording == "n_gen"
    assert [field.text for field in message.fields.values()] == ["120", "38.91", "39.02"]


@pytest.mark.parametrize("value", ["nan", "-nan", "-nan(ind)", "inf", "1e-05", "-1.000", "0"])
def test_numbers_as_printf_writes_them(value: str) -> None:
    text = f" - looking for better prompt, base f_keep = {value}, f_sim = 0.004"
    assert messages().parse(text, "srv").fields["f_keep"].text == value


@pytest.mark.parametrize(
    ("text", "wording", "fields"),
    [
        ("kv cache rm [531, end)", "kv_cache_rm", {"n_tokens": "531"}),
        ("n_past = 5, memory_seq_rm [9, end)", "n_past", {"n_tokens": "5", "pos": "9"}),
        ("n_tokens = 5, memory_seq_rm [9, end)", "n_tokens", {"n_tokens": "5", "pos": "9"}),
        ("cached n_tokens = 5, memory_seq_rm [9, end)", "cached_n_tokens", {"n_tokens": "5", "pos": "9"}),
    ],
)
def test_one_kind_has_all_its_wordings(text: str, wording: str, fields: dict[str, str]) -> None:
    message = messages().parse(text)
    assert (message.kind, message.wording) == ("batch_start", wording)
    assert {name: field.text for name, field in message.fields.items()} == fields


def test_the_two_meanings_of_n_tokens_are_kept_apart() -> None:
    old = messages().parse("prompt processing progress, n_past = 512, n_tokens = 256, progress = 0.94")
    new = messages().parse(
        "prompt processing progress, n_tokens = 512, batch.n_tokens = 256, progress = 0.94"
    )
    assert old.fields["batch_tokens"].text == new.fields["batch_tokens"].text == "256"
    assert "n_tokens" not in old.fields
    assert new.fields["n_tokens"].text == "512"


def test_a_refusal_names_column_and_expectation() -> None:
    with pytest.raises(Refused) as caught:
        messages().parse(CREATED.replace("n_tokens", "n_toks"))
    refused = caught.value
    assert refused.kind == "created_checkpoint"
    assert CREATED[: refused.column] == "created context checkpoint 1 of 32 (pos_min = 0, pos_max = 531, "
    assert set(refused.expected) == {"'n_tokens'", "'size'"}
    assert "column 65" in str(refused)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("new slot, n_ctx =", "an integer"),
        ("new slot, n_ctx = 5, more = 6", "the end of the line"),
        ("slot context shift, n_keep = x", "an integer"),
        ("released", ""),
    ],
)
def test_refusals_in_words(text: str, expected: str) -> None:
    with pytest.raises(Refused) as caught:
        messages().parse(text)
    assert caught.value.expected == ((expected,) if expected else ())
    assert (caught.value.kind is None) == (not expected)


def test_the_family_decides() -> None:
    assert messages().parse("processing task, id = 7", "que").kind == "processing_task_id"
    assert messages().parse("processing task").kind == "processing_task"
    with pytest.raises(Refused):
        messages().parse("processing task, id = 7", "slot")


def test_an_unknown_family_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        messages().parse("processing task", "sltt")


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[31m[bold red]\x1b]0;title\x07",
        "a | b\nnew: ... c | d",
        CREATED,
        "task id = 7, error: x",
        "\ufffd\x00\ud800",
        "",
    ],
)
def test_token_text_is_data(hostile: str) -> None:
    message = messages().parse("old: ... " + hostile)
    assert message.kind == "mismatch_old"
    assert messages().kinds[message.kind].treatment == "text"
    if hostile:
        assert message.fields["text"].text == hostile


def test_a_line_of_megabytes_is_no_problem() -> None:
    """The time is linear; processor time, so that a busy machine does not fail it."""
    started = time.process_time()
    for text in (
        "old: ... " + "x " * 1_000_000,
        "request: " + "A" * 2_000_000,
        "stop processing: " + "n" * 2_000_000,
    ):
        for family in ("slot", "srv"):
            try:
                messages().parse(text, family)
            except Refused:
                continue
    assert time.process_time() - started < 10


def test_lark_is_imported_by_the_first_parse() -> None:
    code = (
        "import sys; from ckptlog.grammar import messages; messages().kinds; sys.exit('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
