"""A chat as its client holds it, and what clients do to their histories."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.live import texts
from tests.live.scenario import ChatStart
from tests.live.vocabulary import END_THINK

Message = dict[str, str]


@dataclass
class Chat:
    """One conversation. ``last`` are the messages as they were sent last, to be repeated.

    An operation that the chat is too short for changes nothing, so that made-up scenarios can be
    shortened step by step.
    """

    name: str
    system: str
    messages: list[Message] = field(default_factory=list)
    last: list[Message] = field(default_factory=list)
    #: how many messages were written, so that each has words of its own
    said: int = 0

    @classmethod
    def start(cls, name: str, start: ChatStart) -> Chat:
        """A chat with nothing but its system prompt."""
        if start.tools:
            system = texts.agent_system_prompt(start.tools, start.system, start.seed)
        else:
            system = "You are a helpful assistant. " + texts.sentences(start.system, start.seed)
        return cls(name, system, [{"role": "system", "content": system}])

    def seed(self, number: int) -> int:
        """A seed: the same in every run, another for each number and chat."""
        return int(sum(ord(c) * 7919**i for i, c in enumerate(self.name, 1))) % 100_003 * 10_000 + number

    def waits_for_an_answer(self) -> bool:
        return self.messages[-1]["role"] == "user"

    def ask(self, text: str | None, words: int) -> None:
        """Add a user message: ``text``, or ``words`` words of small talk."""
        if text is None:
            text = texts.sentences(words, self.seed(self.said))
        self.said += 1
        self.messages.append({"role": "user", "content": text})

    def answer(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})

    def edit(self, turn: int, at: int) -> None:
        """Other words in a user message (1 the first, -1 the last) from its ``at``-th word on."""
        users = self._users()
        if turn == 0 or abs(turn) > len(users):
            return
        message = self.messages[users[turn - 1 if turn > 0 else turn]]
        words = message["content"].split(" ")
        fresh = texts.sentences(len(words), self.seed(1000 + self.said)).split(" ")
        self.said += 1
        message["content"] = " ".join([*words[:at], "No,", *fresh[at:]])

    def rewrite(self, line: str) -> None:
        """A first line for the system prompt, in the place of the one put there before."""
        self.messages[0] = {"role": "system", "content": f"{line}\n{self.system}"}

    def strip_reasoning(self) -> None:
        """Replies keep only what follows their reasoning."""
        for message in self.messages:
            if message["role"] == "assistant":
                message["content"] = message["content"].split(END_THINK)[-1].lstrip("\n")

    def undo(self, *, question: bool) -> None:
        """Drop the last message, or the last reply with its question; the system prompt stays."""
        del self.messages[max(1, len(self.messages) - (2 if question else 1)) :]

    def compact(self, words: int) -> None:
        """A summary in the place of all but the last turn."""
        if len(self.messages) < 5:
            return
        summary = "Summary: " + texts.sentences(words, self.seed(2000))
        self.messages[1:-2] = [
            {"role": "user", "content": summary},
            {"role": "assistant", "content": "I see."},
        ]

    def fork(self, name: str, turns: int) -> Chat:
        """A chat of its own with the first ``turns`` turns of this one."""
        users = self._users()
        end = users[turns] if len(users) > turns else len(self.messages)
        return Chat(name, self.system, [dict(m) for m in self.messages[:end]])

    def _users(self) -> list[int]:
        return [i for i, m in enumerate(self.messages) if m["role"] == "user"]
