"""A ``llama-server`` for the CI examples: its options, llama.cpp's own server of the ``live`` extra.

    python llama_server.py --model tiny.gguf --port 8080 -lv 4 --ctx-checkpoints 2

Run by itself, in a process of its own; ends on SIGTERM as llama-server does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))


def value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


def main() -> None:
    import child  # type: ignore[import-not-found, unused-ignore]
    import xllamacpp  # type: ignore[import-untyped, unused-ignore]

    words = [word.removeprefix("--") for word in sys.argv[1:]]
    options = {name: value(given) for name, given in zip(words[::2], words[1::2], strict=True)}
    params = xllamacpp.CommonParams()
    params.model.path = options.pop("model")
    params.port = options.pop("port")
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.fit_params = False
    options["verbosity"] = options.pop("-lv")
    missing = child.set_flags(params, options)
    assert not missing, missing
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server = xllamacpp.Server(params)
    stop.wait()
    del server
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
