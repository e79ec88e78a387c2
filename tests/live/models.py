"""Tiny random-weight models that llama-server loads, one for each kind of memory it knows.

=========== ============================== =============================================
name        architecture                   memory
=========== ============================== =============================================
plain       qwen2, full attention          KV cache; never makes checkpoints
swa         gemma3, window of 64, BOS      sliding-window KV cache
hybrid      qwen35, delta net + attention  recurrent state and KV cache (M-RoPE: no shift)
recurrent   mamba                          recurrent state only
=========== ============================== =============================================

The weights are random, the text that comes out is not: every block is scaled down so that the
residual stream stays close to the embedding of the last token, and the output matrix is solved
so that only the words listed in ``_NEXT`` can follow it. Such a model is a Markov chain over
words whose replies tokenize again to the very same ids when a client sends them back. Its
attention and recurrent states are still the real thing, and that is what the server manages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from tests.live import texts
from tests.live.vocabulary import BOS, END_OF_TEXT, END_THINK, IM_END, SPECIAL, THINK, Vocabulary, train

Array = npt.NDArray[np.float32]

#: ChatML; the system prompt is a message of its own, so the first user start lies behind it.
CHAT_TEMPLATE = (
    "{%- for m in messages -%}"
    "{{- '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}"
    "{%- if enable_thinking is defined and enable_thinking -%}{{- '<think>' -}}{%- endif -%}{%- endif -%}"
)

_OPEN = ("I", "The", "This", "Now", "We")
_NOUN = (" test", " file", " parser", " cache", " server", " table", " index", " queue")
_VERB = (" reads", " keeps", " returns", " checks", " drops")
_OBJECT = (" every", " no", " its", " each")
_THING = (" line", " value", " record", " path", " key")
_WHY = (" if", " or", " so", " then")
_MARK = (" this", " that", " it")

#: What may follow which word. A reply ends after a full stop, in one of about four cases.
_NEXT: dict[tuple[str, ...], tuple[str, ...]] = {
    _OPEN: _NOUN,
    _NOUN: _VERB,
    _VERB: _OBJECT,
    _OBJECT: _THING,
    _THING: (".",),
    (".",): (" The", " This", " Now", IM_END),
    (" The", " This", " Now"): _NOUN,
    ("\n", "\n\n"): _OPEN,
    # reasoning has words of its own, so that the walk stays in it until it ends; it starts without
    # a space, because the server trims what it returns
    (THINK,): ("So", "First"),
    ("So", "First"): _MARK,
    _WHY: _MARK,
    _MARK: (";",),
    (";",): (*_WHY, END_THINK),
    (END_THINK,): ("\n\n",),
}


@cache
def vocabulary() -> Vocabulary:
    words = {w for group in (*_NEXT, *_NEXT.values()) for w in group} - set(SPECIAL)
    return train(texts.corpus(), tuple(sorted(words)))


class TinyModel:
    """One GGUF file in the making: the parts that all architectures share."""

    n_embd = 64
    n_layer = 4
    n_head = 2
    n_ff = 128

    def __init__(self, path: Path, arch: str, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.writer = gguf.GGUFWriter(path, arch)
        self.arch = arch
        self.head_dim = self.n_embd // self.n_head

    def weights(self, *shape: int, scale: float = 0.05) -> Array:
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def faint(self, *shape: int) -> Array:
        """Weights of a block's last matrix: so small that the residual stream hardly moves."""
        return self.weights(*shape, scale=0.0005)

    def add(self, name: str, tensor: Array) -> None:
        self.writer.add_tensor(name, np.ascontiguousarray(tensor, dtype=np.float32))

    def ones(self, name: str, n: int, value: float = 1.0) -> None:
        self.add(name, np.full(n, value, np.float32))

    def header(self, name: str, *, attention: bool = True) -> None:
        w = self.writer
        w.add_name(name)
        w.add_context_length(65536)
        w.add_embedding_length(self.n_embd)
        w.add_block_count(self.n_layer)
        w.add_feed_forward_length(self.n_ff if attention else 0)
        w.add_head_count(self.n_head if attention else 0)
        if attention:
            w.add_head_count_kv(1)
            w.add_rope_freq_base(1_000_000.0)
        w.add_layer_norm_rms_eps(1e-6)
        w.add_file_type(gguf.LlamaFileType.ALL_F32)

    def tokenizer(self, *, bos: bool = False) -> None:
        vocab, w = vocabulary(), self.writer
        control = len(vocab.tokens) - len(SPECIAL)
        types = [gguf.TokenType.NORMAL] * control + [
            gguf.TokenType.USER_DEFINED if s in (THINK, END_THINK) else gguf.TokenType.CONTROL
            for s in SPECIAL
        ]
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("qwen2")
        w.add_token_list(vocab.tokens)
        w.add_token_types([int(t) for t in types])
        w.add_token_merges(vocab.merges)
        w.add_eos_token_id(vocab.id(IM_END))
        w.add_pad_token_id(vocab.id(END_OF_TEXT))
        w.add_bos_token_id(vocab.id(BOS))
        w.add_add_bos_token(bos)
        w.add_chat_template(CHAT_TEMPLATE)

    def embeddings(self) -> None:
        """Input embeddings, and an output matrix under which only ``_NEXT`` can follow."""
        vocab = vocabulary()
        n_vocab = len(vocab.tokens)
        embd = self.rng.standard_normal((n_vocab, self.n_embd)).astype(np.float32)
        embd[:, 0] = 1.0  # a component that all tokens share: what follows an unlisted token
        embd /= np.linalg.norm(embd, axis=1, keepdims=True)
        successors: dict[int, set[int]] = {}
        for words, following in _NEXT.items():
            for word in words:
                successors.setdefault(vocab.id(word), set()).update(vocab.id(f) for f in following)
        listed = sorted(successors)
        # a base that prefers the opening words after anything, then a least-squares correction
        # that makes the logit of each word 1 after its predecessors and 0 after all others
        output = np.zeros((n_vocab, self.n_embd), np.float32)
        for word in _OPEN:
            output[vocab.id(word), 0] = 4.0
        for token in range(n_vocab):
            wanted = np.array([float(token in successors[s]) for s in listed], np.float32)
            missing = wanted - embd[listed] @ output[token]
            if np.any(missing):
                output[token] += np.linalg.lstsq(embd[listed], missing, rcond=None)[0]
        output += self.weights(n_vocab, self.n_embd, scale=0.002)
        # the final norm scales the residual stream to sqrt(n_embd): 25 makes the choice sharp
        self.add("token_embd.weight", embd)
        self.ones("output_norm.weight", self.n_embd)
        self.add("output.weight", output * np.float32(25.0 / np.sqrt(self.n_embd)))

    def attention(self, block: str, *, qk_norm: bool, gated: bool = False) -> None:
        d, hd = self.n_embd, self.head_dim
        self.add(block + "attn_q.weight", self.weights(hd * self.n_head * (2 if gated else 1), d))
        self.add(block + "attn_k.weight", self.weights(hd, d))
        self.add(block + "attn_v.weight", self.weights(hd, d))
        if qk_norm:
            self.ones(block + "attn_q_norm.weight", hd)
            self.ones(block + "attn_k_norm.weight", hd)
        else:
            for name, n in (("q", hd * self.n_head), ("k", hd), ("v", hd)):
                self.ones(f"{block}attn_{name}.bias", n, 0.0)
        self.add(block + "attn_output.weight", self.faint(d, hd * self.n_head))

    def feed_forward(self, block: str) -> None:
        self.add(block + "ffn_gate.weight", self.weights(self.n_ff, self.n_embd))
        self.add(block + "ffn_up.weight", self.weights(self.n_ff, self.n_embd))
        self.add(block + "ffn_down.weight", self.faint(self.n_embd, self.n_ff))

    def close(self) -> None:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def write_plain(path: Path) -> None:
    """qwen2: full attention in every layer."""
    m = TinyModel(path, "qwen2")
    m.header("tiny qwen2")
    m.tokenizer()
    m.embeddings()
    for i in range(m.n_layer):
        block = f"blk.{i}."
        m.ones(block + "attn_norm.weight", m.n_embd)
        m.attention(block, qk_norm=False)
        m.ones(block + "ffn_norm.weight", m.n_embd)
        m.feed_forward(block)
    m.close()


def write_swa(path: Path) -> None:
    """gemma3: five layers with a window of 64, the sixth sees everything; prompts start with BOS."""
    m = TinyModel(path, "gemma3")
    m.n_layer = 6
    m.header("tiny gemma3")
    m.writer.add_key_length(m.head_dim)
    m.writer.add_value_length(m.head_dim)
    m.writer.add_sliding_window(64)
    m.tokenizer(bos=True)
    m.embeddings()
    for i in range(m.n_layer):
        block = f"blk.{i}."
        m.ones(block + "attn_norm.weight", m.n_embd)
        m.attention(block, qk_norm=True)
        # norms behind the block would undo its faint weights, so they are small themselves
        m.ones(block + "post_attention_norm.weight", m.n_embd, 0.001)
        m.ones(block + "ffn_norm.weight", m.n_embd)
        m.feed_forward(block)
        m.ones(block + "post_ffw_norm.weight", m.n_embd, 0.001)
    m.close()


def write_hybrid(path: Path) -> None:
    """qwen35: gated delta net and gated attention in turn."""
    m = TinyModel(path, "qwen35")
    m.header("tiny qwen35")
    w, d = m.writer, m.n_embd
    d_conv, d_state, n_group = 4, 32, 2
    d_inner = d_state * n_group
    w.add_key_length(m.head_dim)
    w.add_value_length(m.head_dim)
    w.add_rope_dimension_count(m.head_dim // 2)
    w.add_rope_dimension_sections([3, 3, 2, 0])
    w.add_ssm_conv_kernel(d_conv)
    w.add_ssm_inner_size(d_inner)
    w.add_ssm_state_size(d_state)
    w.add_ssm_time_step_rank(n_group)
    w.add_ssm_group_count(n_group)
    w.add_uint32("qwen35.full_attention_interval", 2)
    m.tokenizer()
    m.embeddings()
    for i in range(m.n_layer):
        block = f"blk.{i}."
        m.ones(block + "attn_norm.weight", d)
        m.ones(block + "post_attention_norm.weight", d)
        if i % 2:
            m.attention(block, qk_norm=True, gated=True)
        else:
            conv_dim = 3 * d_inner  # query, key and value side by side
            m.add(block + "attn_qkv.weight", m.weights(conv_dim, d))
            m.add(block + "attn_gate.weight", m.weights(d_inner, d))
            m.add(block + "ssm_conv1d.weight", m.weights(conv_dim, d_conv, scale=0.3))
            m.add(block + "ssm_dt.bias", m.weights(n_group))
            m.add(block + "ssm_a", -np.abs(m.weights(n_group, scale=0.5)) - np.float32(0.01))
            m.add(block + "ssm_beta.weight", m.weights(n_group, d))
            m.add(block + "ssm_alpha.weight", m.weights(n_group, d))
            m.ones(block + "ssm_norm.weight", d_state)
            m.add(block + "ssm_out.weight", m.faint(d, d_inner))
        m.feed_forward(block)
    m.close()


def write_recurrent(path: Path) -> None:
    """mamba: a recurrent state in every layer, no attention at all."""
    m = TinyModel(path, "mamba")
    m.header("tiny mamba", attention=False)
    w, d = m.writer, m.n_embd
    d_inner, d_conv, d_state, dt_rank = 2 * d, 4, 16, 4
    w.add_ssm_conv_kernel(d_conv)
    w.add_ssm_inner_size(d_inner)
    w.add_ssm_state_size(d_state)
    w.add_ssm_time_step_rank(dt_rank)
    m.tokenizer()
    m.embeddings()
    for i in range(m.n_layer):
        block = f"blk.{i}."
        m.ones(block + "attn_norm.weight", d)
        m.add(block + "ssm_in.weight", m.weights(2 * d_inner, d))
        m.add(block + "ssm_conv1d.weight", m.weights(d_inner, d_conv, scale=0.3))
        m.ones(block + "ssm_conv1d.bias", d_inner, 0.0)
        m.add(block + "ssm_x.weight", m.weights(dt_rank + 2 * d_state, d_inner))
        m.add(block + "ssm_dt.weight", m.weights(d_inner, dt_rank))
        m.ones(block + "ssm_dt.bias", d_inner, 0.0)
        m.add(block + "ssm_a", -np.abs(m.weights(d_inner, d_state, scale=0.5)) - np.float32(0.01))
        m.ones(block + "ssm_d", d_inner)
        m.add(block + "ssm_out.weight", m.faint(d, d_inner))
    m.close()


WRITERS: dict[str, Callable[[Path], None]] = {
    "plain": write_plain,
    "swa": write_swa,
    "hybrid": write_hybrid,
    "recurrent": write_recurrent,
}


def make_model(name: str, folder: Path) -> Path:
    """The model's file in ``folder``, written now if it is not there; KeyError for an unknown name."""
    path = folder / f"tiny-{name}.gguf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        WRITERS[name](part)
        part.rename(path)
    return path
