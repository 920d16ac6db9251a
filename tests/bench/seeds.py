"""Write sets as the broker makes them of the same requests, and what is there before any round."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from uuid import uuid4

from broker.memory.keys import content_key
from broker.services.entries import terms_of
from providers.conformance import specimens
from providers.entries import RecallEntry
from providers.interface import IMemoryProvider
from providers.model import Content, HeadPut, Kind, ProjectKey, Trust, WriteSet
from providers.requests import Committed
from tests.bench.texts import AGENT, COMPILED, RECALLED, RUN, TENANT, tags, text

AT_ONCE = 25
SECONDS = 60.0
READ = 1_000
"""How many records the agent has in the project ``read``."""
SEEDED = {"read": READ, "recall": RECALLED, **{f"compile-{each}": each for each in COMPILED}}

_numbers = count(1)


def number() -> int:
    """Return a number that nothing in this process has."""
    return next(_numbers)


def project(name: str) -> ProjectKey:
    """Return the key of a project of the bench."""
    return ProjectKey(TENANT, name)


def said(each: int) -> Content:
    """Return the content of a number, as a request says it."""
    return Content(
        type="note",
        title=None,
        content=text(each),
        rationale=None,
        importance=0.5,
        tags=tags(each),
    )


def put(each: int, *, trust: Trust = Trust.PENDING, mark: str = "") -> HeadPut:
    """Return the first revision of a memory, with the entry that the broker makes for it."""
    content = said(each)
    record = specimens.memory(
        f"{mark}{uuid4()}",
        revision_id=f"{mark}{uuid4()}",
        content=content,
        trust=trust,
        agent_id=AGENT,
        source_run_id=RUN,
        facet=None,
    )
    return specimens.put(record, entry=RecallEntry(terms_of(content, None)))


def created(name: str, mark: str = "") -> WriteSet:
    """Return what the broker commits for one ``CreateRecord``; ``mark`` is part of each name."""
    one = put(number(), mark=mark)
    current = one.record.current
    key = mark + content_key(AGENT, None, current.content.content)
    made = specimens.write(project(name), one, **specimens.claiming(current.record_id, key))
    return specimens.keyed(made, key=f"{mark}{uuid4()}")


def noted(name: str, mark: str = "") -> WriteSet:
    """Return what is committed for a session note without tags, which no recall finds."""
    content = replace(said(number()), tags=())
    record = specimens.memory(
        f"{mark}{uuid4()}",
        revision_id=f"{mark}{uuid4()}",
        kind=Kind.SESSION_CONTEXT,
        content=content,
        agent_id=AGENT,
        source_run_id=RUN,
        facet=None,
    )
    key = content_key(AGENT, None, content.content)
    made = specimens.write(project(name), specimens.put(record), must_be_absent=(mark + key,))
    return specimens.keyed(made, key=f"{mark}{uuid4()}")


@cache
def filling(name: str) -> Sequence[WriteSet]:
    """Return the write sets that fill a project with approved memories, the same in every store."""
    made = []
    for first in range(0, SEEDED[name], AT_ONCE):
        size = min(AT_ONCE, SEEDED[name] - first)
        puts = [put(number(), trust=Trust.APPROVED) for _ in range(size)]
        made.append(specimens.write(project(name), *puts))
    return made


async def seed(provider: IMemoryProvider, name: str) -> list[str]:
    """Make the records of a project, and return their ids."""
    for write in filling(name):
        told = await provider.commit(write, timeout=SECONDS)
        if told != Committed():
            raise RuntimeError(f"the project {name} could not be filled: {told}")
    return [each.record.current.record_id for write in filling(name) for each in write.heads]
