"""``analyze``: read whole logs and judge every turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Event

from ckptlog.analysis.analysis import Analysis
from ckptlog.analysis.analyzer import MOST_WHOLE, Analyzer
from ckptlog.analysis.collector import no_collector
from ckptlog.analysis.parallel import analyze_in_parts
from ckptlog.analysis.parts import Joined, Undivided
from ckptlog.intake.reader import CHUNK_BYTES, read_chunks
from ckptlog.intake.sources import Source, expand
from ckptlog.processes import dismiss, how_many
from ckptlog.timeline.limits import MAX_TURNS

#: from this size on memory counts for more than the time of a second reading
BIG_BYTES = 64 << 20

Path = str | os.PathLike[str]


def analyze(
    paths: Path | Sequence[Path],
    *,
    chunk_bytes: int = CHUNK_BYTES,
    max_bytes: int | None = None,
    progress: Callable[[int], None] | None = None,
    stopped: Callable[[], bool] | None = None,
    processes: int | None = None,
    timeline: bool = False,
) -> Analysis:
    """Read logs and judge every turn in them.

    ``paths``: a file, a directory, a glob, ``-`` for standard input, or several of these.
    ``max_bytes`` limits what a source may hold (after decompression); ``progress`` is called with the
    bytes read of the current source; ``stopped`` is asked between chunks whether to end with what was
    read (``Analysis.interrupted`` says so). ``processes`` is how many may work on one big log with several
    server starts in it (null: as many as there are processors); what they find is the same.
    ``timeline``: ``Analysis.timeline`` will be asked for, which a big log would have to be read again for.
    Raises ``ckptlog.errors.InputError`` if a log can't be read.
    """
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    sources = expand([os.fspath(name) for name in names])
    if len(sources) == 1 and stopped is None and not timeline:
        joined = _in_parts(sources[0], processes, max_bytes, progress)
        if joined is not None:
            return Analysis(joined)
    sizes = [None if source.is_stdin else source.raw_size() for source in sources]
    # of a big log that can be read again, the timeline's own objects are not all kept
    whole = timeline or max_bytes is not None or None in sizes or sum(size or 0 for size in sizes) < BIG_BYTES
    analyzer = Analyzer(whole_timeline=whole, most_whole=MAX_TURNS if timeline else MOST_WHOLE)
    left = Event()
    with no_collector():
        for source in sources:
            if stopped is not None and stopped():
                break
            analyzer.begin(source)
            left.clear()
            chunks = read_chunks(
                source,
                chunk_bytes=chunk_bytes,
                max_bytes=max_bytes,
                stopped=lambda: left.is_set() or (stopped is not None and stopped()),
            )
            for _ in analyzer.feed_all(chunks, left):
                if progress is not None:
                    progress(source.facts.raw_bytes)
        analyzer.finish()
    return Analysis(analyzer, interrupted=stopped is not None and stopped())


def _in_parts(
    source: Source, processes: int | None, max_bytes: int | None, progress: Callable[[int], None] | None
) -> Joined | None:
    """The analysis by several processes; null where it is not worth it or not possible."""
    size = None if source.is_stdin else source.raw_size()
    if size is None or (max_bytes is not None and size > max_bytes):
        return None
    processes = how_many(size, processes)
    if processes < 2:
        return None
    with no_collector():
        try:
            return analyze_in_parts(source.path, processes, progress)
        except Undivided:
            return None
        finally:
            dismiss()
