"""The ``ckptlog`` command: a table of commands, each imported only when it is used.

A command is a function ``NAME`` in the module ``ckptlog.cli.NAME`` (one file a command, thin:
arguments, call, print, exit code). ``ckptlog --help`` is made from the table alone, so it
imports neither Polars, Lark nor Textual. Errors are told in one place, :func:`main`.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from ckptlog import __version__
from ckptlog.cli.common import let_go_of_streams, silence_stdout, tell
from ckptlog.errors import CkptlogError, ExitCode

#: command -> the line ``ckptlog --help`` shows for it
COMMANDS = {
    "diagnose": "What happened in every turn, why, and what to change.",
    "tui": "Walk through a log: turns, checkpoints and lines on a timeline.",
    "gate": "Judge logs against a policy, for CI.",
    "compare": "What got worse and what better between two logs.",
    "watch": "Follow a growing log: a line a turn, a warning when one fails.",
    "run": "Start the server so that its log can be diagnosed, and follow it.",
    "whatif": "What other flags would have saved, turn by turn.",
    "explain": "What a word of a report means: an outcome, a cause, a fix.",
    "doctor": "What a log is, what it can and can't tell, and how to capture a better one.",
    "sample": "List the bundled sample logs, or print one.",
    "schema": "The JSON Schema of the report.",
}

EXAMPLES = """\
Examples:
  ckptlog diagnose server.log               what went wrong, and what to do
  ckptlog diagnose server.log --format json | jq .summary
  ckptlog sample evicted-system-prompt | ckptlog diagnose -
  ckptlog doctor server.log                 what this log can and can't tell
  ckptlog explain checkpoint-evicted

A good log is made with:
  LLAMA_SERVER_SLOTS_DEBUG=1 LLAMA_SERVER_SLOTS_N_DIFF=20 \\
    llama-server ... -lv 4 2> server.log"""

#: objects between two looks for cycles: imports and an analysis make millions that stay, and looking at them every 700
#: costs a fifth of the time
_GC_THRESHOLD = 200_000


class LazyCommands(MutableMapping[str, Any]):
    """The commands by name; the module behind a name is imported when the name is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            if name not in COMMANDS or find_spec(f"ckptlog.cli.{name}") is None:
                raise KeyError(name)
            module = importlib.import_module(f"ckptlog.cli.{name}")
            app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            app.command(
                name,
                short_help=COMMANDS[name],
                context_settings=getattr(module, "CONTEXT_SETTINGS", None),
                no_args_is_help=getattr(module, "NO_ARGS_IS_HELP", False),
            )(getattr(module, name))
            self._loaded[name] = typer.main.get_command(app)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in COMMANDS if find_spec(f"ckptlog.cli.{name}") is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class CommandTable(TyperGroup):
    """A group whose commands are :class:`LazyCommands`, and whose help comes from the table."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write_paragraph()
        formatter.write(EXAMPLES + "\n")


app = typer.Typer(
    cls=CommandTable,
    name="ckptlog",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"ckptlog {__version__}")  # noqa: T201
        raise typer.Exit()


@app.callback()
def ckptlog(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit."),
    ] = False,
) -> None:
    """Reads llama-server logs and says, turn by turn, why a prompt was processed again,
    refused, cut short or shifted, and what to change."""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line (``sys.argv`` by default) and give its exit code.

    Errors become one line on stderr; a traceback is shown only with ``CKPTLOG_DEBUG=1``.
    """
    try:
        return _main(args)
    finally:
        gc.enable()  # a command may have done without


def _main(args: Sequence[str] | None) -> int:
    gc.set_threshold(_GC_THRESHOLD, 20, 20)
    code = _run(args)
    let_go_of_streams()
    return code


def command() -> NoReturn:
    """The program ``ckptlog``: ``main`` with ``sys.argv``, and the end of the process.

    It ends at once, unless a thread has work to finish: Python would take all modules and records apart first,
    which takes longer than a small log.
    """
    code = _main(None)
    if all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(code)
    sys.exit(code)


def _run(args: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that is not UTF-8 must not end the report
            stream.reconfigure(errors="backslashreplace")
    try:
        command = typer.main.get_command(app)
        result = command.main(
            args=None if args is None else list(args), prog_name="ckptlog", standalone_mode=False
        )
        sys.stdout.flush()
        return int(result) if isinstance(result, int) else int(ExitCode.OK)
    except CkptlogError as error:
        if os.environ.get("CKPTLOG_DEBUG"):
            raise
        tell(str(error), getattr(error, "details", ()))
        return int(error.exit_code)
    except typer.TyperException as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        silence_stdout()
        return int(ExitCode.OK)
    except OSError as error:  # a full disk, a terminal that went away
        if os.environ.get("CKPTLOG_DEBUG"):
            raise
        silence_stdout()
        tell(" ".join(str(part) for part in (error.strerror or error, error.filename) if part))
        return int(ExitCode.USAGE)
    except Exception as error:
        if os.environ.get("CKPTLOG_DEBUG"):
            raise
        tell(
            f"a fault of ckptlog's own ({type(error).__name__}: {str(error)[:200]}); please report it to its "
            "issue tracker with what `ckptlog doctor` says of the log (CKPTLOG_DEBUG=1 shows where it happened)"
        )
        return int(ExitCode.USAGE)


#: the option library's wording of wrong values, and one for people
_PLAIN_WORDS = {
    ": Value error, ": ": ",
    "Input should be a valid integer, unable to parse string as an integer": "a whole number is wanted",
    "Input should be a valid number, unable to parse string as a number": "a number is wanted",
}


def _usage(error: typer.TyperException) -> int:
    """A wrong command line: the sentence, and where help is."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message(), file=sys.stderr)  # noqa: T201
        return int(ExitCode.USAGE)
    path = context.command_path if context is not None else "ckptlog"
    message = error.format_message().rstrip(".")
    for theirs, ours in _PLAIN_WORDS.items():
        message = message.replace(theirs, ours)
    tell(f"{message} (try: {path} --help)")
    return int(ExitCode.USAGE)
