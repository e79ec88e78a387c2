"""``ckptlog gate``: judge logs against a policy, for CI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ckptlog.cli.common import (
    OutputOption,
    console,
    deliver,
    rendered,
    tell,
    warn_all,
    write_file,
    write_stdout,
)
from ckptlog.errors import CkptlogError, ExitCode, UsageError

if TYPE_CHECKING:
    from ckptlog.gate.policy import Policy
    from ckptlog.gate.run import Judged
    from ckptlog.gate.verdict import GateVerdict
    from ckptlog.report.snapshot import Snapshot


class Format(StrEnum):
    """What the verdict is written as."""

    text = "text"
    json = "json"


def gate(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG...",
            help="A file (plain, .gz, .zst), a directory, a glob, or - for stdin.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The policy; without it ckptlog.toml or [tool.ckptlog] of pyproject.toml here, if any.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Compare with this baseline as well.", show_default=False),
    ] = None,
    write_baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write these logs as a baseline.", show_default=False),
    ] = None,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Warn, don't fail, where the log does not say enough.")
    ] = False,
    output_format: Annotated[
        Format, typer.Option("--format", "-f", help="How to write the verdict.")
    ] = Format.text,
    output: OutputOption = None,
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write JUnit XML as well.", show_default=False)
    ] = None,
    sarif: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write SARIF 2.1.0 as well.", show_default=False)
    ] = None,
    gitlab: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a GitLab code quality report as well.", show_default=False),
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print GitHub annotations and append to the job summary.")
    ] = False,
    check_policy: Annotated[
        bool, typer.Option("--check-policy", help="Only check the policy; no log is needed.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of ckptlog.toml and exit.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Logs read at a time; one a core by default.", show_default=False
        ),
    ] = None,
) -> int:
    """Judge logs against a policy: one verdict a log, and an exit code for CI.

    Without a policy any failed turn fails the gate, any error, and any turn of which the log does
    not tell the outcome.

    \b
    Examples:
      ckptlog gate server.log
      ckptlog gate logs/ --policy ci/ckptlog.toml --junit build/ckptlog.xml
      ckptlog gate server.log --write-baseline baseline.json
      ckptlog gate server.log --baseline baseline.json
      ckptlog gate --check-policy

    \b
    Exit code: 0 passed, 1 failed, 2 a log, policy or baseline can't be used, 3 a log holds no turn.
    """
    from ckptlog.gate.policy import find_policy, policy_schema
    from ckptlog.report.as_json import encode_json

    if schema:
        deliver(encode_json(policy_schema()), output)
        return ExitCode.OK
    chosen = _with_options(find_policy(policy), allow_unknown)
    if check_policy:
        deliver(_policy_words(chosen), output)
        return ExitCode.OK
    if not logs:
        raise UsageError("no log given")
    verdict, judged = _judge(logs, chosen, baseline, write_baseline, jobs)
    warn_all([warning for one in judged for warning in one.warnings])
    if write_baseline is not None:
        _write_baseline(write_baseline, judged)
    _write_files(verdict, junit, sarif, gitlab)
    if output_format is Format.json:
        deliver(encode_json(verdict), output)
    else:
        _print(verdict, output)
    if github:
        _github(verdict, to_stdout=output_format is Format.text or output not in (None, "-"))
    return verdict.exit_code


def _with_options(policy: Policy, allow_unknown: bool) -> Policy:
    import msgspec

    if not allow_unknown:
        return policy
    return msgspec.structs.replace(policy, gate=msgspec.structs.replace(policy.gate, allow_unknown=True))


def _policy_words(policy: Policy) -> str:
    """What a policy that could be read asks for, on one line; a result, so it goes where results go."""
    from ckptlog.report.safe import safe_text
    from ckptlog.report.words import plural

    where = policy.file or "no policy file here; the default policy"
    fails = ", ".join(policy.fail_on) or "no outcome"
    return safe_text(f"{where}: fails on {fails}; {plural(len(policy.gate.check), 'check')}") + "\n"


def _judge(
    logs: Sequence[str],
    policy: Policy,
    baseline: str | None,
    write_baseline: str | None,
    jobs: int | None,
) -> tuple[GateVerdict, list[Judged]]:
    from ckptlog.gate.run import run_gate
    from ckptlog.intake.sources import expand

    file = baseline
    if file is None and write_baseline is None and policy.gate.baseline and policy.gate.baseline.file:
        # beside the policy, so that the gate may be run from anywhere
        file = os.path.join(os.path.dirname(policy.file or ""), policy.gate.baseline.file)
    old: list[Snapshot] | None = None
    if file is not None:
        from ckptlog.gate.baseline import read_baseline

        old = read_baseline(file)
    return run_gate([source.path for source in expand(logs)], policy, old, file or "", jobs)


def _write_baseline(file: str, judged: Sequence[Judged]) -> None:
    from ckptlog.gate.baseline import render_baseline

    unread = [one.verdict.path for one in judged if one.snapshot is None]
    if unread:
        # the verdict says why, and its exit code stands
        tell(f"no baseline written: {', '.join(unread[:3])} could not be judged")
        return
    write_file(file, render_baseline([one.snapshot for one in judged if one.snapshot is not None]))
    tell(f"baseline of {len(judged)} log{'s' * (len(judged) != 1)} written to {file}")


def _write_files(verdict: GateVerdict, junit: str | None, sarif: str | None, gitlab: str | None) -> None:
    if junit is not None:
        from ckptlog.gate.junit import render_junit

        write_file(junit, render_junit(verdict))
    if sarif is not None:
        from ckptlog.gate.sarif import render_sarif

        write_file(sarif, render_sarif(verdict))
    if gitlab is not None:
        from ckptlog.gate.gitlab import render_gitlab

        write_file(gitlab, render_gitlab(verdict))


def _print(verdict: GateVerdict, output: str | None) -> None:
    from ckptlog.gate.text import render_text

    screen = console(output)
    deliver(rendered(screen, render_text(verdict, screen.width)), output)


def _github(verdict: GateVerdict, to_stdout: bool) -> None:
    """Annotations on the stream that carries no JSON (GitHub reads both); the summary where it asks."""
    from ckptlog.gate.github import summary, workflow_commands

    lines = "".join(f"{line}\n" for line in workflow_commands(verdict))
    if to_stdout:
        write_stdout(lines)
    else:
        typer.echo(lines, err=True, nl=False)
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if file:
        try:
            # appended to, as GitHub asks: the steps of a job share it
            with open(file, "a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(summary(verdict))
        except OSError as error:
            raise CkptlogError(f"can't write the job summary {file}: {error.strerror or error}") from None
