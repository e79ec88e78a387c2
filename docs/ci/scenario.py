"""A scenario that shows whether a new session still finds its system prompt in the cache.

    python3 scenario.py http://127.0.0.1:8080

It plays one conversation of several turns, and then the start of another with the same system prompt. The
order matters: a fork right after a cold start proves nothing, because the checkpoint at the end of the
system prompt is still there. Only a real conversation in between can push it out. The system prompt has well
over 1,000 tokens for the same reason: what is lost must be worth keeping.

Replace it with a script that does what your agent does. Standard library only.
"""

from __future__ import annotations

import json
import sys
import urllib.request

TURNS = 8

RULES = (
    "Read a file before you change it and quote the lines that you rely on.",
    "Prefer the smallest change that makes the failing test pass.",
    "Say which command you ran, what it printed, and what you concluded from it.",
    "Never run anything that deletes files without asking first.",
    "If a request is not clear, ask one short question and wait for the answer.",
    "Do not invent names of functions, flags or files; look them up.",
)
SYSTEM = "You are a careful programmer's assistant.\n" + "\n".join(
    f"{number}. {RULES[number % len(RULES)]}" for number in range(1, 121)
)
# nothing goes through a proxy: the server is on this machine
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, messages: list[dict[str, str]]) -> str:
    """One turn; the answer's text."""
    body = {"messages": messages, "max_tokens": 64, "temperature": 0, "seed": 1, "cache_prompt": True}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with OPENER.open(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def main() -> None:
    url = sys.argv[1].rstrip("/")
    conversation = [{"role": "system", "content": SYSTEM}]
    for turn in range(1, TURNS + 1):
        question = (
            f"Step {turn}: the test number {turn} fails since yesterday. " + "What do you look at? " * 4
        )
        conversation.append({"role": "user", "content": question})
        conversation.append({"role": "assistant", "content": ask(url, conversation)})
    new_task = {"role": "user", "content": "A new task: write the change log of this release."}
    ask(url, [conversation[0], new_task])


if __name__ == "__main__":
    main()
