"""Known faults of builds (``ckptlog/server/builds.toml``), told where the log's build has them."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.server.builds import Fault, faults, known_faults
from ckptlog.timeline.model import Run
from ckptlog.verdict.fixes import upgrade


def named(name: str) -> Fault:
    """The fault of that name, whichever builds have it; KeyError for one that the table does not hold."""
    found = next((fault for fault in faults() if fault.name == name), None)
    if found is None:
        raise KeyError(name)
    return found


def fault_of(run: Run, name: str) -> tuple[Fault, bool] | None:
    """The fault of that name, if some build that the log's wording allows has it with this memory; true if
    all of these builds do.

    KeyError for a name that the table does not hold.
    """
    named(name)
    if run.bracket_broken:
        return None
    known = known_faults(run.memory, run.build_min or None, run.build_max)
    return next(((fault, certain) for fault, certain in known if fault.name == name), None)


def sentence(fault: Fault, *, certain: bool, about: bool = True) -> str:
    """The fault with its builds and its issue; ``about``: and in words."""
    builds = f"b{fault.first} to b{fault.last}" if fault.first else f"all builds up to b{fault.last}"
    issue = f"issue {fault.issue}, " if fault.issue is not None else ""
    mended = f"mended in b{fault.mended}" if fault.mended is not None else "in no later one known to be mended"
    which = "a known fault of" if certain else "probably a known fault of"
    return f"This is {which} {builds} ({issue}{mended})" + (f": {fault.about}." if about else ".")


def mend(fault: Fault) -> list[Fix]:
    """The upgrade that ends the fault; none where no build is known that does."""
    return [upgrade(fault.mended, "the fault is mended there")] if fault.mended is not None else []


def told(run: Run, name: str, *, seen: bool = False, about: bool = True) -> tuple[str, list[Fix]]:
    """Sentence and fix for a fault; empty where no build of the log's bracket has it.

    ``seen``: the turn itself shows the fault at work, so that it is certain whatever the bracket.
    ``about``: say what it is, too (not where the text before has said it).
    """
    found = fault_of(run, name)
    if found is None:
        return "", []
    fault, certain = found
    return sentence(fault, certain=certain or seen, about=about), mend(fault)
