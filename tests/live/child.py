"""The server's own process: ``python child.py CONFIG.json``; ends when its stdin closes.

Runs under any release of xllamacpp, in an environment that holds nothing else, so it uses the
standard library alone and imports nothing of the project but its neighbour ``bridge.py``. CONFIG is ``{"flags": {...},
"logger": {...}, "ready": PATH}``; READY is written as JSON when the server listens:
``{"address": ..., "bridged": whether ``bridge.py`` serves it, "missing": [flags this release does
not know], "params": {...}}``.
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

import bridge  # the script's own folder is on the path

#: llama-server's long options and the field of ``CommonParams`` that each sets; where a field
#: was renamed, all its names.
FIELDS = {
    "ctx-size": ("n_ctx",),
    "parallel": ("n_parallel",),
    "batch-size": ("n_batch",),
    "ubatch-size": ("n_ubatch",),
    "verbosity": ("verbosity",),
    "ctx-checkpoints": ("n_ctx_checkpoints", "n_swa_checkpoints"),
    "checkpoint-min-step": ("checkpoint_min_step",),
    "checkpoint-every-n-tokens": ("checkpoint_every_nt",),
    "cache-ram": ("cache_ram_mib",),
    "cache-idle-slots": ("cache_idle_slots", "clear_idle"),
    "cache-prompt": ("cache_prompt",),
    "cache-reuse": ("n_cache_reuse",),
    "context-shift": ("ctx_shift",),
    "keep": ("n_keep",),
    "predict": ("n_predict",),
    "swa-full": ("swa_full",),
    "kv-unified": ("kv_unified",),
    "slot-save-path": ("slot_save_path",),
    "slot-prompt-similarity": ("slot_prompt_similarity",),
    "embeddings": ("embedding",),
    "pooling": ("pooling_type",),
    "chat-template": ("chat_template",),
    "reasoning-format": ("reasoning_format",),
    "log-prompts-dir": ("path_prompts_log_dir",),
}

#: The logger's own switches, as functions of the library (xllamacpp has no field for them).
LOGGER = {
    "jsonl": ("_Z20common_log_set_jsonlb", False),
    "colors": ("_Z21common_log_set_colorsP10common_log10log_colors", True),
    "prefix": ("_Z21common_log_set_prefixP10common_logb", True),
    "timestamps": ("_Z25common_log_set_timestampsP10common_logb", True),
}


def set_flags(params: Any, flags: dict[str, Any]) -> list[str]:
    """Apply ``flags``; returns the names of those that this release has no field for."""
    missing = []
    for flag, value in flags.items():
        name = next((n for n in FIELDS[flag] if hasattr(params, n)), None)
        if name is None:
            missing.append(flag)
        else:
            setattr(params, name, value)
    return missing


def set_logger(library: Any, switches: dict[str, bool]) -> list[str]:
    """Turn the logger's switches; returns the names of those that this release does not have."""
    missing = []
    for name, value in switches.items():
        symbol, takes_logger = LOGGER[name]
        function = getattr(library, symbol, None)
        if function is None:
            missing.append(name)
            continue
        arguments: list[Any] = [ctypes.c_int(int(value))]
        if takes_logger:
            main_log = library._Z15common_log_mainv
            main_log.restype = ctypes.c_void_p
            arguments.insert(0, ctypes.c_void_p(main_log()))
        function(*arguments)
    return missing


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    import xllamacpp  # type: ignore[import-untyped, unused-ignore]

    params = xllamacpp.CommonParams()
    params.model.path = config["model"]
    # one thread: the scenarios test bookkeeping, and runs on a busy machine must not starve
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config.get("threads", 1)
    for name, value in (
        ("warmup", False),
        ("fit_params", False),
        ("use_jinja", True),
        ("endpoint_slots", True),
    ):
        if hasattr(params, name):
            setattr(params, name, value)
    missing = set_flags(params, config["flags"])
    library = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("xllamacpp.*.so"))))
    missing += set_logger(library, config["logger"])
    server = xllamacpp.Server(params)
    bridged = not hasattr(server, "listening_address")
    shown = ("n_ctx", "n_parallel", "n_batch", "n_ubatch", "n_ctx_checkpoints", "checkpoint_min_step",
             "checkpoint_every_nt", "cache_ram_mib", "cache_idle_slots", "ctx_shift", "n_keep", "swa_full",
             "kv_unified", "slot_prompt_similarity", "verbosity")  # fmt: skip
    ready = {
        "address": bridge.serve(server) if bridged else server.listening_address,
        "bridged": bridged,
        "missing": missing,
        "params": {n: getattr(params, n) for n in shown if hasattr(params, n)},
    }
    part = Path(config["ready"] + ".part")
    part.write_text(json.dumps(ready))
    part.rename(config["ready"])
    sys.stdin.read()
    del server  # stops it in order, so that the log ends as an ordinary shutdown does
    # the logger writes in a thread of its own: pausing it waits until all is written
    library._Z15common_log_mainv.restype = ctypes.c_void_p
    library._Z16common_log_pauseP10common_log(ctypes.c_void_p(library._Z15common_log_mainv()))
    os._exit(0)  # nothing of the library's own clean-up at exit can then disturb the log


if __name__ == "__main__":
    main()
