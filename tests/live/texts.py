"""The words that scenarios are made of: prompts of an asked-for length, and an agent's system prompt.

Texts are written from a fixed word list by a seeded generator, so that one scenario always
sends the same bytes, and so that the tiny models' vocabulary (trained on these very words)
spends about one token a word.
"""

from __future__ import annotations

import json
import random

#: Subjects, verbs and so on of the small talk that fills prompts to a length.
_SUBJECTS = (
    "the parser", "the cache", "this function", "the test", "our server", "the client", "a worker",
    "the queue", "that module", "the index", "the build", "a request", "the loop", "the table",
)  # fmt: skip
_VERBS = (
    "reads", "drops", "returns", "keeps", "writes", "checks", "counts", "sorts", "opens", "closes",
    "renames", "copies", "merges", "prints",
)  # fmt: skip
_OBJECTS = (
    "every line", "the first value", "an empty list", "the last record", "two files", "its own state",
    "the wrong path", "a new token", "the old key", "no result", "the whole buffer", "each column",
)  # fmt: skip
_TAILS = (
    "before the timer ends", "when the disk is full", "after a restart", "in the second pass",
    "without a lock", "as the manual says", "on the slow machine", "until the user stops it",
)  # fmt: skip

#: Rules an agent's system prompt usually starts with.
_RULES = (
    "Answer in plain text unless the user asks for a table.",
    "Read a file before you change it, and quote the lines you rely on.",
    "Never run a command that deletes files without asking first.",
    "Prefer the smallest change that makes the failing test pass.",
    "Say which test you ran and what it printed.",
    "If the request is not clear, ask one short question.",
    "Do not invent names of functions, flags or files.",
    "Keep every line below one hundred characters.",
    "When a tool fails, show the error and try another way once.",
    "Stop when the task is done and list what is left.",
)

#: An agent's tools: name, what it does, its parameters.
_TOOLS = (
    ("read_file", "Read a text file and return the lines asked for.", ("path", "first_line", "last_line")),
    ("write_file", "Write a text file, replacing what it held.", ("path", "content")),
    ("edit_file", "Replace one exact piece of text in a file.", ("path", "old_text", "new_text")),
    ("list_folder", "List the files and folders below a path.", ("path", "depth", "pattern")),
    ("search_text", "Search all files for a regular expression.", ("pattern", "path", "max_results")),
    ("run_command", "Run a command in the shell and return its output.", ("command", "timeout", "folder")),
    ("run_tests", "Run the tests that match a name.", ("name", "verbose")),
    ("git_status", "Show which files have changed.", ("folder",)),
    ("git_diff", "Show the changes of a file since a commit.", ("path", "commit")),
    ("git_commit", "Record the staged changes with a message.", ("message", "paths")),
    ("fetch_page", "Fetch a page and return its text.", ("address", "max_length")),
    ("ask_user", "Ask the user a question and wait for the answer.", ("question", "choices")),
)


def sentences(n_words: int, seed: int) -> str:
    """Plain sentences of about ``n_words`` words (for the tiny models: about as many tokens)."""
    rng = random.Random(seed)
    out: list[str] = []
    words = 0
    while words < n_words:
        s = f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} {rng.choice(_TAILS)}."
        words += len(s.split()) + 1
        out.append(s[0].upper() + s[1:])
    return " ".join(out)


def agent_system_prompt(n_tools: int = 12, n_guide_words: int = 600, seed: int = 1) -> str:
    """A coding agent's system prompt: rules, a guide to the project, and tool schemas as JSON."""
    rules = "\n".join(f"{i}. {rule}" for i, rule in enumerate(_RULES, 1))
    tools = "\n".join(json.dumps(_schema(i)) for i in range(n_tools))
    guide = "\n\n".join(sentences(60, seed * 100 + i) for i in range(max(1, n_guide_words // 60)))
    return (
        "You are a coding agent that works in a user's repository.\n\n"
        f"# Rules\n{rules}\n\n# About this project\n{guide}\n\n"
        f"# Tools\nYou may call one tool at a time, as JSON.\n{tools}\n"
    )


def _schema(number: int) -> dict[str, object]:
    name, description, parameters = _TOOLS[number % len(_TOOLS)]
    version = "" if number < len(_TOOLS) else f"_{number // len(_TOOLS) + 1}"
    return {
        "type": "function",
        "function": {
            "name": name + version,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {
                    p: {"type": "string", "description": f"The {p.replace('_', ' ')} of the call."}
                    for p in parameters
                },
                "required": list(parameters[:1]),
            },
        },
    }


def corpus() -> str:
    """Everything above once, as training text for the tiny models' vocabulary."""
    return agent_system_prompt(n_tools=len(_TOOLS), n_guide_words=1200) + sentences(2000, seed=2)
