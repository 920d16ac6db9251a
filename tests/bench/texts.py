"""Who acts in all cases, where, and what they say: each text is another one, all of one size."""

import random
from itertools import accumulate
from typing import Final

ISSUER: Final = "https://identity.bench"
TENANT, AGENT, RUN = "bench", "agent-a", "run-1"
COMPOSER: Final = "composer"
"""An agent with few memories among those of others."""
RUNS: Final = tuple(f"run-{each}" for each in range(1, 33))
"""Those of the project ``write``; others have one. Promotions meet in their run, so they take
turns."""
COMPILED: Final = (10, 100, 1_000)
"""How many candidates there are for a context in each of the projects ``compile-...``."""
RECALLED: Final = 10_000
"""How many memories the agent has in the project ``recall``."""
WRITTEN: Final = "write"
PROJECTS: Final = (WRITTEN, "read", "recall", *(f"compile-{each}" for each in COMPILED))

_SPOKEN: Final = """
    build cache branch cluster commit config deploy design driver engine feature filter gateway
    handler header index interface journal kernel latency ledger limit logger machine matrix
    memory message metric migration module network object operator parser partition pattern
    payload pipeline planner policy pointer process profile protocol provider query queue record
    region release replica request resource retry router runtime sample schema script segment
    server service session shard signal snapshot socket stage storage stream table tenant thread
    timeout topic trace tunnel update vector version volume warning window worker writer yield
"""
_SHORT: Final = tuple(_SPOKEN.split())
_WORDS: Final = (*_SHORT, *(one + other for one in _SHORT[:19] for other in _SHORT))
"""About 1,700; the next one is as much rarer than the first as its place says."""
_OFTEN: Final = tuple(accumulate(1 / place for place in range(1, len(_WORDS) + 1)))
_ASKED: Final = _WORDS[10:500]
"""What queries hold: neither what nearly all texts hold, nor what hardly any does."""
WORDS: Final = 33
"""How many words a text has, of about 300 characters."""


def text(number: int) -> str:
    """Return the text of a number: words that are said, and one that no other text has."""
    words = random.Random(number).choices(_WORDS, cum_weights=_OFTEN, k=WORDS - 1)
    return f"{' '.join(words)} topic{number:09}"


def tags(number: int) -> tuple[str, str]:
    """Return the two tags of a text; one in ten texts has the same first one."""
    return f"area-{number % 10}", f"part-{number % 97}"


def query(number: int) -> str:
    """Return three words, each of which some texts hold."""
    return " ".join(random.Random(-1 - number).sample(_ASKED, 3))
