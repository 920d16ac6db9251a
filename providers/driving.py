"""Which terms of a query bring records of their own (Q-4): one rule for every store."""

from collections.abc import Sequence

from providers.recall import DRIVEN_MAX


def driving(
    terms: Sequence[str], frequencies: Sequence[int], *, most: int = DRIVEN_MAX
) -> tuple[int, ...]:
    """Return the places of the terms that drive, the rarest first.

    Args:
        terms: The terms of a request.
        frequencies: How many records hold each of them, in their order.
        most: What the frequencies of those that drive may be together.
    """
    rarest = sorted(range(len(terms)), key=lambda place: (frequencies[place], terms[place]))
    found = [place for place in rarest if frequencies[place] > 0]
    held = 0
    for count, place in enumerate(found):
        held += frequencies[place]
        if held > most:
            return tuple(found[: max(count, 1)])
    return tuple(found)
