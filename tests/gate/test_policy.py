"""Policies, good and bad, with the exact message for each bad one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from ckptlog.errors import ExitCode
from ckptlog.gate.errors import PolicyError
from ckptlog.gate.policy import DEFAULT_FAIL_ON, find_policy, load_policy, parse_policy, policy_schema

CONTRACT = """
[gate]
fail_on = ["arrival-rejection", "context-shift"]
[[gate.check]]
name  = "re-prefill budget"
expr  = "count(outcome == 'checkpoint-reprefill' and severity == 'costly') <= 2"
[[gate.check]]
expr  = "sum(n_cached) / sum(n_prompt) >= 0.90"
where = "slot == 0 and n_prompt > 1000"
[gate.baseline]
file = "baseline.json"
max_regression = {reuse = 0.02, n_lost = "10%", failed = 0}
"""
GOOD = [
    "",
    "[gate]",
    CONTRACT,
    "[gate]\nfail_on = []\nwarn_only = true\nallow_unknown = true",
    '[[gate.check]]\nexpr = "count() > 1"\nby = "slot"\nallow_unknown = true\nwarn_only = true',
    '[[gate.check]]\nexpr = "max(prompt_ms) < 2k"\nby = ["model", "slot"]',
    '[gate]\nfail_on = ["error", "cancelled"]\n[gate.baseline]\nwarn_only = true',
    '[gate.baseline.max_regression]\nprompt_ms = "25 %"\ncheckpoint-reprefill = 1',
]


@pytest.mark.parametrize("toml", GOOD)
def test_good_policy_is_taken_and_fits_the_schema(toml: str) -> None:
    parse_policy(toml, "ckptlog.toml")
    jsonschema.Draft202012Validator(policy_schema()).validate(tomllib.loads(toml))


def test_the_contracts_example_says_what_it_says() -> None:
    policy = parse_policy(CONTRACT, "ckptlog.toml")
    assert policy.fail_on == ("arrival-rejection", "context-shift")
    assert [check.name for check in policy.gate.check] == ["re-prefill budget", None]
    assert policy.gate.baseline is not None
    assert policy.gate.baseline.max_regression == {"reuse": 0.02, "n_lost": "10%", "failed": 0}


def test_without_fail_on_the_default_counts() -> None:
    assert parse_policy("", "ckptlog.toml").fail_on == DEFAULT_FAIL_ON
    assert parse_policy("[gate]\nfail_on = []", "ckptlog.toml").fail_on == ()


FIRST = '[[gate.check]]\nexpr = "count() > 1"\n'
BAD = [
    ("[gate]\nfail_onn = []", "line 2: gate.fail_onn: unknown key; did you mean fail_on?"),
    ("[gates]\nfail_on = []", "line 1: gates: unknown key; did you mean gate?"),
    ("x = 1", "line 1: x: unknown key"),
    (FIRST + 'exp = "1"', "line 3: gate.check[0].exp: unknown key; did you mean expr?"),
    ("[gate.baseline]\nfiles = 'x'", "line 2: gate.baseline.files: unknown key; did you mean file?"),
    (
        '[gate]\nfail_on = ["chekpoint-reprefill"]',
        "line 2: gate.fail_on[0]: there is no outcome 'chekpoint-reprefill'; did you mean checkpoint-reprefill?",
    ),
    ('[gate]\nfail_on = "error"', "line 2: gate.fail_on: should be a list, not a text"),
    ("gate = 3", "line 1: gate: should be a table, not a whole number"),
    ('[gate]\nwarn_only = "yes"', "line 2: gate.warn_only: should be true or false, not a text"),
    ('[[gate.check]]\nname = "a"', "line 1: gate.check[0]: the key expr is missing"),
    ("[[gate.check]]\nexpr = 1", "line 2: gate.check[0].expr: should be a text, not a whole number"),
    (
        FIRST + '\n[[gate.check]]\nexpr = "count(faild) == 0"',
        "line 5: gate.check[1].expr: there is no column faild; did you mean failed? (character 7 of the expression)",
    ),
    (
        '[[gate.check]]\nexpr = "n_prompt > 3"',
        "line 2: gate.check[0].expr: n_prompt has a value for each turn, and a check needs one for all: "
        "write sum(n_prompt) or max(n_prompt) (character 1 of the expression)",
    ),
    (
        "[[gate.check]]\nexpr = \"count(outcome == 'context-shif') == 0\"",
        "line 2: gate.check[0].expr: outcome is never 'context-shif'; did you mean 'context-shift'? "
        "(character 18 of the expression)",
    ),
    (
        FIRST + 'where = "slot = 1"',
        "line 3: gate.check[0].where: '=' is no operator here: write == to compare (character 6 of the expression)",
    ),
    (
        FIRST + 'where = "sum(slot) == 1"',
        "line 3: gate.check[0].where: sum(...) is a value for many turns: it can stand in a gate check, not in an "
        "expression about one turn (character 1 of the expression)",
    ),
    (FIRST + 'by = "slots"', "line 3: gate.check[0].by: there is no column slots; did you mean slot?"),
    (FIRST + "by = [1]", "line 3: gate.check[0].by[0]: should be a text, not a whole number"),
    (FIRST + 'name = " "', "line 3: gate.check[0].name: a name can't be empty"),
    (
        FIRST + 'name = "a"\n' + FIRST + 'name = "a"',
        "line 6: gate.check[1].name: gate.check[0] has the same name",
    ),
    (
        "[gate.baseline]\nmax_regression = {reus = 1}",
        "line 2: gate.baseline.max_regression.reus: there is no figure reus to compare; did you mean reuse?",
    ),
    (
        '[gate.baseline.max_regression]\nn_lost = "5"',
        "line 2: gate.baseline.max_regression.n_lost: '5' is neither a number from 0 nor a percentage like '10%'",
    ),
    (
        "[gate.baseline]\nmax_regression = {reuse = -0.1}",
        "line 2: gate.baseline.max_regression.reuse: -0.1 is neither a number from 0 nor a percentage like '10%'",
    ),
    (
        "[gate.baseline]\nmax_regression = {reuse = true}",
        "line 2: gate.baseline.max_regression: should be a number or a text, not true or false",
    ),
]


@pytest.mark.parametrize(("toml", "message"), BAD)
def test_bad_policy_is_told_where_and_what(toml: str, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy(toml, "ci/ckptlog.toml")
    assert str(raised.value) == f"ci/ckptlog.toml, {message}"
    assert raised.value.exit_code is ExitCode.USAGE


def test_a_wrong_expression_is_shown_with_a_caret() -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy('[[gate.check]]\nexpr = "count(faild) == 0"', "ckptlog.toml")
    assert raised.value.details == ("  count(faild) == 0", "        ^")


def test_broken_toml() -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy("[gate\n", "ckptlog.toml")
    assert str(raised.value) == (
        "ckptlog.toml: this is no TOML: expected ']' at the end of a table declaration (at line 1, column 6)"
    )


def test_unreadable_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.toml: can't be read: no such file or directory"):
        load_policy(str(tmp_path / "nowhere.toml"))
    (tmp_path / "utf16.toml").write_text("[gate]", encoding="utf-16")
    with pytest.raises(PolicyError, match="can't be read: it is not UTF-8"):
        load_policy(str(tmp_path / "utf16.toml"))


def test_in_pyproject_the_policy_is_below_tool_ckptlog(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "x"\n[tool.ckptlog.gate]\nfail_on = ["error"]\n')
    assert load_policy(str(file)).fail_on == ("error",)
    file.write_text('[project]\nname = "x"\n[tool.ckptlog.gate]\nfailon = ["error"]\n')
    with pytest.raises(
        PolicyError, match=r"line 4: tool\.ckptlog\.gate\.failon: unknown key; did you mean fail_on"
    ):
        load_policy(str(file))


def test_the_policy_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_policy(None).file is None
    Path("pyproject.toml").write_text('[project]\nname = "x"\n')
    assert find_policy(None).file is None
    Path("pyproject.toml").write_text("[tool.ckptlog.gate]\nfail_on = []\n")
    assert find_policy(None).file == "pyproject.toml"
    Path("ckptlog.toml").write_text('[gate]\nfail_on = ["error"]\n')
    assert find_policy(None).file == "ckptlog.toml"
    assert find_policy("pyproject.toml").fail_on == ()


def test_the_schema_refuses_what_the_loader_refuses() -> None:
    schema = jsonschema.Draft202012Validator(policy_schema())
    schema.check_schema(policy_schema())
    json.dumps(policy_schema())
    for toml in (BAD[0][0], BAD[5][0], BAD[9][0], BAD[20][0]):
        assert list(schema.iter_errors(tomllib.loads(toml)))
