"""Delivery: the service's clock, read in the query that reads the effect, says when a lease ends.

What is written then replaces just what was read. No time of this process is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from providers.cosmos import keys, rows
from providers.cosmos.batch import Batch
from providers.cosmos.calls import ATTEMPTS, Calls, Link, Query
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
)
from providers.documents import DAMAGE, taken
from providers.errors import ProviderUnavailableError, StoredDataInvalidError
from providers.findable import findable, findable_project
from providers.rules import check_code

_NOWHERE = EffectFound(None)
_EFFECT = "c.runId, c.sequence, c.body, c.delivered, c.token, c.until, c.code, c.fact"
_LEASED = f"{_EFFECT}, c.total, GetCurrentTimestamp() AS moment"
_KEPT = ("id", "doc", "runId", "sequence", "body", "delivered", "token", "until", "code", "fact")
_SEQUENCE_MAX = 2**53
_MAY_BE_ABSENT = {str, type(None)}
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Read:
    """An effect, how many of its run are delivered (all up to there), and what time it was."""

    effect: Document
    stream: Document | None
    delivered: int
    moment: int


Change = Callable[[_Read], Document | None]
"""What to write of an effect in place of what was read; ``None``: nothing."""


async def acquire(calls: Calls, request: AcquireRequest, timeout: float) -> Acquired:
    """See ``IMemoryProvider.acquire``."""
    token = str(uuid4())

    def lease(read: _Read) -> Document | None:
        effect = read.effect
        is_leased = effect["token"] is not None and effect["until"] > read.moment
        is_next = effect["sequence"] == read.delivered + 1
        if effect["delivered"] or is_leased or not is_next:
            return None
        return {"token": token, "until": read.moment + request.lease_ms}

    done, found = await _deliver(calls, request, lease, timeout)
    return Acquired(token if done else None, found.effect, found.delivered, found.acknowledgement)


async def acknowledge(
    calls: Calls, request: LeaseRequest, acknowledgement: Acknowledgement, timeout: float
) -> bool:
    """See ``IMemoryProvider.acknowledge``."""
    # As text: the sequence may have more digits than the service's numbers.
    fact = [acknowledgement.fact_id, str(acknowledgement.sequence)]

    def mark(read: _Read) -> Document | None:
        if not _is_held(read, request) or read.effect["until"] <= read.moment:
            return None
        return {"token": None, "until": 0, "delivered": True, "code": None, "fact": fact}

    done, _ = await _deliver(calls, request, mark, timeout)
    return done


async def release(calls: Calls, request: LeaseRequest, code: str, timeout: float) -> bool:
    """See ``IMemoryProvider.release``."""
    calls.connections.check_open()
    check_code(code)

    def give_back(read: _Read) -> Document | None:
        return {"token": None, "until": 0, "code": code} if _is_held(read, request) else None

    done, _ = await _deliver(calls, request, give_back, timeout)
    return done


async def effect(calls: Calls, request: EffectRequest, timeout: float) -> EffectFound:
    """See ``IMemoryProvider.effect``."""
    item_id, run_id = keys.effect_id(findable(request.receipt_id)), findable(request.run_id)
    query = Query("c.id = @id AND c.runId = @run", {"id": item_id, "run": run_id}, _EFFECT)

    async def work(link: Link) -> EffectFound:
        found = await link.all(query)
        return _to_found(found[0]) if found else _NOWHERE

    partition = keys.partition_of(findable_project(request.project))
    return await calls.run(partition, work, timeout=timeout)


async def pending_effects(
    calls: Calls, request: PendingEffectsRequest, timeout: float
) -> PendingEffects:
    """See ``IMemoryProvider.pending_effects``."""
    where = "c.doc = 'effect' AND c.runId = @run AND c.delivered = false AND c.sequence > @after"
    after = min(request.after_sequence, _SEQUENCE_MAX)
    given = {"run": findable(request.run_id), "after": after}
    query = Query(where, given, _EFFECT, "c.sequence", request.limit + 1)

    async def work(link: Link) -> PendingEffects:
        found = tuple(_to_found(each) for each in await link.all(query))
        return PendingEffects(found[: request.limit], more=len(found) > request.limit)

    partition = keys.partition_of(findable_project(request.project))
    return await calls.run(partition, work, timeout=timeout)


async def _deliver(
    calls: Calls, request: AcquireRequest | LeaseRequest, change: Change, timeout: float
) -> tuple[bool, EffectFound]:
    """Change an effect if it may be, and return it as it was."""

    async def work(link: Link) -> tuple[bool, EffectFound]:
        for _ in range(ATTEMPTS):
            read = await _read(link, request.run_id, request.receipt_id)
            if read is None:
                return False, _NOWHERE
            found, changed = _to_found(read.effect), change(read)
            if changed is None:
                return False, found
            if await link.commit(_batch(link.partition, read, changed)):
                return True, found
        raise ProviderUnavailableError("others write faster than can be read")

    partition = keys.partition_of(findable_project(request.project))
    return await calls.run(partition, work, timeout=timeout)


async def _read(link: Link, run_id: str, receipt_id: str) -> _Read | None:
    run = findable(run_id)
    effect_id, stream_id = keys.effect_id(findable(receipt_id)), keys.stream_id(run)
    given = {"effect": effect_id, "stream": stream_id, "run": run}
    where = "c.id IN (@effect, @stream) AND c.runId = @run"
    found = {each["id"]: each for each in await link.snapshot(Query(where, given, _LEASED))}
    there, ended = found.get(effect_id), found.get(stream_id)
    if there is None:
        return None
    try:
        count = 0 if ended is None else taken(int)(ended["total"])
        return _Read(there, ended, count, int(there["moment"]))
    except DAMAGE:
        raise StoredDataInvalidError("what is stored of a run's effects is damaged") from None


def _batch(partition: str, read: _Read, changed: Document) -> Batch:
    batch = Batch(partition)
    kept = {name: read.effect[name] for name in _KEPT}
    batch.replace(kept | changed, read.effect["_etag"])
    if changed.get("delivered"):
        run_id, stream = read.effect["runId"], read.stream
        told = rows.delivered(run_id, read.effect["sequence"])
        batch.put(told, None if stream is None else stream["_etag"])
    return batch


def _is_held(read: _Read, request: LeaseRequest) -> bool:
    held = read.effect["token"]
    return held is not None and not read.effect["delivered"] and held == request.token


def _to_found(document: Document) -> EffectFound:
    """Return the effect and where its delivery stands.

    Raises:
        StoredDataInvalidError: It is damaged. Not retryable.
    """
    made = rows.to_effect(document)
    try:
        fact, code, token = document["fact"], document["code"], document["token"]
        answer = None if fact is None else Acknowledgement(taken(str)(fact[0]), int(fact[1]))
        if document["sequence"] != made.sequence or {type(code), type(token)} - _MAY_BE_ABSENT:
            raise TypeError
        taken(int)(document["until"])
        return EffectFound(made, taken(bool)(document["delivered"]), code, answer)
    except DAMAGE:
        raise StoredDataInvalidError("a stored effect is damaged") from None
