"""Small logs made by hand: a server's lines, with the numbers that a case needs."""

from __future__ import annotations

from collections.abc import Iterable


class Log:
    """The lines of one newer server (b11063 and later) on one slot, as ``-lv 4`` prints them."""

    def __init__(
        self,
        *,
        memory: str = "hybrid",
        n_swa: int = 0,
        n_ctx: int = 65536,
        n_slots: int = 1,
        checkpoints: tuple[int, int] | None = (32, 256),
    ) -> None:
        self.lines: list[str] = []
        self.clock = 1000
        self.task = 0
        self.held = 0
        self.n_ctx = n_ctx
        self.memory = memory
        self.line("I", "srv          init: initializing ...")
        self.raw("I", f"print_info: n_swa                 = {n_swa}")
        if memory in ("hybrid", "recurrent"):
            self.raw("I", "llama_memory_recurrent: size =    0.30 MiB (     1 cells,   4 layers,  1 seqs  0 rs_seq), R (f32): "
                          "0.15 MiB, S (f32):    0.15 MiB")  # fmt: skip
        if memory != "recurrent":
            self.raw("I", "llama_kv_cache: size =    1.00 MiB (  4096 cells,   2 layers,  1/1 seqs), K (f16):    "
                          "0.50 MiB, V (f16):    0.50 MiB")  # fmt: skip
        self.line("I", f"srv    load_model: initializing, n_slots = {n_slots}, n_ctx_slot = {n_ctx}, kv_unified = 'false'")
        if checkpoints is not None:
            most, step = checkpoints
            self.line("I", f"srv    load_model: context checkpoints enabled, max = {most}, min spacing = {step}")
        else:
            self.line("I", "srv    load_model: context checkpoints disabled")

    def raw(self, letter: str, text: str) -> None:
        self.clock += 1000
        micros = self.clock
        stamp = f"{micros // 60_000_000}.{micros // 1_000_000 % 60:02d}.{micros // 1000 % 1000:03d}.{micros % 1000:03d}"
        self.lines.append(f"{stamp} {letter} {text}")

    line = raw

    def slot(self, function: str, text: str, *, letter: str = "I", task: int | None = None) -> None:
        self.raw(letter, f"slot {function:>12}: id  0 | task {self.task if task is None else task} | {text}")

    def turn(
        self,
        n_prompt: int,
        common: int,
        *,
        cached: int | None = None,
        generated: int = 10,
        before: Iterable[str] = (),
        between: Iterable[str] = (),
        after: Iterable[str] = (),
        truncated: int = 0,
        ms: float = 1000.0,
    ) -> None:
        """One request: ``before`` stands behind the slot's choice, ``between`` at the search, ``after`` before the end.

        Texts are messages of the slot's scheduler.
        """
        self.task += 1
        cached = common if cached is None else cached
        if self.held:
            sim, keep = common / n_prompt, common / self.held
            self.slot("get_availabl", f"- checking sim = {sim:.3f} ({common}/{n_prompt}) > 0.100", task=-1)
            self.slot("get_availabl", f"selected slot by LCP similarity, f_sim_best = {sim:.3f} (> 0.100 thold), "
                                      f"f_keep = {keep:.3f}", task=-1)  # fmt: skip
        else:
            self.slot("get_availabl", "selected slot by LRU, t_last = -1", task=-1)
        for text in before:
            self.slot("operator()", text)
        self.slot("launch_slot_", "processing task, is_child = 0")
        self.slot("operator()", f"new prompt, n_ctx_slot = {self.n_ctx}, n_keep = 0, task.n_tokens = {n_prompt}")
        for text in between:
            self.slot("operator()", text, letter="W")
        self.slot("operator()", f"cached n_tokens = {cached}, memory_seq_rm [{cached}, end)")
        self.slot("init_sampler", f"init sampler, took 0.10 ms, tokens: text = {n_prompt}, total = {n_prompt}")
        for text in after:
            self.slot("operator()", text, letter="W")
        processed = n_prompt - cached
        self.slot("print_timing", f"prompt eval time = {ms:10.2f} ms / {processed:5d} tokens ({ms / max(processed, 1):8.2f} ms "
                                  f"per token, {1000 * processed / ms:8.2f} tokens per second)")  # fmt: skip
        self.slot("print_timing", f"       eval time = {ms:10.2f} ms / {generated:5d} tokens ({ms / generated:8.2f} ms "
                                  f"per token, {1000 * generated / ms:8.2f} tokens per second)")  # fmt: skip
        self.slot("print_timing", f"      total time = {2 * ms:10.2f} ms / {processed + generated:5d} tokens")
        self.held = n_prompt + generated - 1
        self.slot("release", f"stop processing: n_tokens = {self.held}, truncated = {truncated}")

    def create(self, n_tokens: int, index: int, most: int = 32) -> str:
        low = n_tokens - 1 if self.memory in ("hybrid", "recurrent") else 0
        return (
            f"created context checkpoint {index} of {most} (pos_min = {low}, pos_max = {n_tokens - 1}, "
            f"n_tokens = {n_tokens}, size = 10.000 MiB)"
        )

    @staticmethod
    def erase_old(n_tokens: int) -> str:
        return (
            f"erasing old context checkpoint (pos_min = {n_tokens - 1}, pos_max = {n_tokens - 1}, "
            f"n_tokens = {n_tokens}, size = 10.000 MiB)"
        )

    @staticmethod
    def check(n_tokens: int, threshold: int) -> str:
        return f"checking checkpoint with [{n_tokens - 1}, {n_tokens - 1}] against {threshold}..."

    @staticmethod
    def restore(n_tokens: int) -> str:
        return (
            f"restored context checkpoint (pos_min = {n_tokens - 1}, pos_max = {n_tokens - 1}, n_tokens = {n_tokens}, "
            f"n_past = {n_tokens}, size = 10.000 MiB)"
        )

    FORCED = (
        "forcing full prompt re-processing due to lack of cache data "
        "(likely due to SWA or hybrid/recurrent memory, see https://github.com/ggml-org/llama.cpp/pull/13194#issuecomment-2868343055)"
    )
