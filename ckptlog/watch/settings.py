"""The level and the environment that a diagnosis needs of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: what prints checkpoints, restores and reuse in every build (formats by build: docs/capture.md)
LEVEL = ("-lv", "4")
_LEVEL_FLAGS = ("-lv", "--verbosity", "--log-verbosity", "-v", "--verbose", "--log-verbose")
_LEVEL_VARIABLES = ("LLAMA_ARG_LOG_VERBOSITY", "LLAMA_LOG_VERBOSITY")
#: prints where the new prompt parts from what a slot holds, with the tokens there
SLOTS_DEBUG = ("LLAMA_SERVER_SLOTS_DEBUG", "1")
#: how many tokens around that place; newer builds show none without it (ckptlog/server/builds.toml)
SLOTS_N_DIFF = ("LLAMA_SERVER_SLOTS_N_DIFF", "20")
#: values with which the server's own reading of a number leaves the dump off
_OFF = ("", "0")


def with_settings(
    command: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str], list[str]]:
    """The command and environment with what is missing for a diagnosis, and what was added, as words."""
    args, variables, added = list(command), dict(environment), []
    given = any(arg.split("=", 1)[0] in _LEVEL_FLAGS for arg in args[1:])
    if not given and not any(variables.get(name) for name in _LEVEL_VARIABLES):
        args += LEVEL
        added.append(" ".join(LEVEL))
    for name, value in (SLOTS_DEBUG, SLOTS_N_DIFF):
        if name not in variables and variables.get(SLOTS_DEBUG[0]) not in _OFF:
            variables[name] = value
            added.append(f"{name}={value}")
    return args, variables, added
