"""What is known of the places in a content at which its messages begin: it goes with the content, from slot to cache and back."""

from __future__ import annotations

import msgspec


class Starts(msgspec.Struct, frozen=True):
    """Positions, in tokens, in what a slot or a saved prompt holds; ascending."""

    #: the lowest one at which a checkpoint was ever made
    first_born: int | None = None
    #: where user messages begin, as far as batches were cut there
    user: tuple[int, ...] = ()
    #: whether turns' batches were seen at all; whether they were seen from token 0 on, so that no start before the
    #: known ones is missing
    seen: bool = False
    complete: bool = False
    #: whether no cut that may be the start of a user message had to be left out of ``user``
    sure: bool = True
    #: between which tokens a user message may begin that the log does not show
    hidden: tuple[tuple[int, int], ...] = ()


#: of new content
NO_STARTS = Starts()
#: of content that is not what it was taken for
UNSURE_STARTS = Starts(sure=False)
