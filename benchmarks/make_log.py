"""Makes a big log out of real ones: repeated until it is big enough, renumbered so that tasks differ.

    python benchmarks/make_log.py OUT --megabytes 200 [--level 4|5] [--slots 4]

Level 4 repeats a real log of 3,000 turns on four slots (tests/data/volume); level 5 the -lv 5 logs of
three memory kinds (tests/data/logs). Each copy is whole, so it is a server that was started again. With
more than four slots, copies run side by side: their records are merged by time, under other slot
numbers; with fewer, the records of the others are left out.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import re
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
#: the slots that the level 4 log has
SLOTS = 4

TASK = re.compile(rb"(\| task |id_task = |task id = |, id = )(\d+)")
SLOT = re.compile(rb"(slot +[^ :]+: id +)(\d+)(?= \|)|(?<=seq_id = )(\d+)")
STAMP = re.compile(rb"(\d+)\.(\d\d)\.(\d\d\d)\.(\d\d\d) ")


def sources(level: int) -> list[bytes]:
    """The real logs to repeat."""
    if level == 4:
        paths = [DATA / "volume" / "b11549-hybrid-volume.log.gz"]
    else:
        paths = sorted((DATA / "logs").glob("b11549/*/lv5.log.gz"))
    if not paths:
        raise SystemExit(f"no log of level {level} below {DATA}")
    return [gzip.decompress(path.read_bytes()) for path in paths]


def renumbered(log: bytes, first_task: int) -> bytes:
    """The same log with all its tasks ``first_task`` higher."""
    if first_task == 0:
        return log
    return TASK.sub(lambda match: match[1] + b"%d" % (int(match[2]) + first_task), log)


def tasks_of(log: bytes) -> int:
    """One more than the highest task."""
    return max((int(match[2]) for match in TASK.finditer(log)), default=0) + 1


def records(log: bytes) -> Iterator[tuple[int, bytes]]:
    """Records with their time in microseconds; lines without a stamp belong to the one before."""
    time, record = 0, bytearray()
    for line in log.splitlines(keepends=True):
        stamp = STAMP.match(line)
        if stamp is not None:
            if record:
                yield time, bytes(record)
            minutes, seconds, millis, micros = map(int, stamp.groups())
            time, record = ((minutes * 60 + seconds) * 1000 + millis) * 1000 + micros, bytearray()
        record += line
    if record:
        yield time, bytes(record)


def other_slots(log: bytes, shift: int) -> bytes:
    """The same log on slots ``shift`` higher."""

    def moved(match: re.Match[bytes]) -> bytes:
        if match[3] is not None:
            return b"%d" % (int(match[3]) + shift)
        number = b"%d" % (int(match[2]) + shift)
        return match[1][: len(match[1]) - len(number) + len(match[2])] + number

    return SLOT.sub(moved, log) if shift else log


def with_slots(log: bytes, slots: int) -> bytes:
    """The log on ``slots`` slots: copies merged by time, or some slots' records left out."""
    if slots == SLOTS:
        return log
    if slots < SLOTS:
        kept = []
        for _, record in records(log):
            slot = SLOT.search(record)
            if slot is None or slot[2] is None or int(slot[2]) < slots:
                kept.append(record)
        return b"".join(kept)
    tasks = tasks_of(log)
    copies = [renumbered(other_slots(log, shift), shift // SLOTS * tasks) for shift in range(0, slots, SLOTS)]
    merged = heapq.merge(*(records(copy) for copy in copies), key=lambda record: record[0])
    return b"".join(record for _, record in merged)


def make(path: Path, megabytes: float, level: int = 4, slots: int = SLOTS) -> None:
    """Write a log of about that size (whole copies; at least one, the last one cut at a line)."""
    logs = [with_slots(log, slots) if level == 4 else log for log in sources(level)]
    size, first_task, number = int(megabytes * 1_000_000), 0, 0
    with path.open("wb") as file:
        while file.tell() < size:
            log = logs[number % len(logs)]
            text = renumbered(log, first_task)
            room = size - file.tell()
            file.write(text if len(text) <= room else text[: text.rfind(b"\n", 0, room) + 1])
            if len(text) > room:
                break
            first_task += tasks_of(log)
            number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a big log out of real ones.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--level", type=int, choices=(4, 5), default=4)
    parser.add_argument("--slots", type=int, default=SLOTS, help="1, 2, or a multiple of 4 (level 4 only)")
    options = parser.parse_args()
    make(options.out, options.megabytes, options.level, options.slots)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
