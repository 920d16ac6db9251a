"""Delivery: each method is one script. The server's clock alone says when a lease ends.

No time is made or compared here.
"""

from typing import Any
from uuid import uuid4

import orjson

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
from providers.documents import DAMAGE, taken, to_effect, to_json, to_time
from providers.errors import StoredDataInvalidError
from providers.findable import findable, findable_project
from providers.model import ProjectKey
from providers.redis.calls import Calls, project_call
from providers.redis.reader import tag_in
from providers.redis.rows import to_list
from providers.redis.scripts import Script
from providers.rules import check_code

_NOWHERE = EffectFound(None)
_UNTOUCHED = b"[null,null,false,null,null,null]"


async def acquire(calls: Calls, request: AcquireRequest, timeout: float) -> Acquired:
    """See ``IMemoryProvider.acquire``."""
    token = str(uuid4())
    asked = _named(request.receipt_id, request.run_id) | {
        "action": "acquire",
        "token": token,
        "lease": request.lease_ms,
        "state": None,
    }
    done, found = await _deliver(calls, request.project, asked, timeout)
    return Acquired(token if done else None, found.effect, found.delivered, found.acknowledgement)


async def acknowledge(
    calls: Calls, request: LeaseRequest, acknowledgement: Acknowledgement, timeout: float
) -> bool:
    """See ``IMemoryProvider.acknowledge``."""
    fact = (acknowledgement.fact_id, acknowledgement.sequence)
    asked = _named(request.receipt_id, request.run_id) | {
        "action": "acknowledge",
        "token": findable(request.token),
        "state": to_json((None, None, True, None, *fact)).decode(),
    }
    done, _ = await _deliver(calls, request.project, asked, timeout)
    return done


async def release(calls: Calls, request: LeaseRequest, code: str, timeout: float) -> bool:
    """See ``IMemoryProvider.release``."""
    calls.connections.lender.check_open()
    check_code(code)
    asked = _named(request.receipt_id, request.run_id) | {
        "action": "release",
        "token": findable(request.token),
        "state": to_json((None, None, False, code, None, None)).decode(),
    }
    done, _ = await _deliver(calls, request.project, asked, timeout)
    return done


async def effect(calls: Calls, request: EffectRequest, timeout: float) -> EffectFound:
    """See ``IMemoryProvider.effect``."""
    project = findable_project(request.project)
    call = project_call(Script.EFFECT, project, {"effect": findable(request.receipt_id)})
    told, kept = await calls.read(call, timeout=timeout)
    found = to_found(tag_in(project), request.receipt_id, told, kept)
    is_of_run = found.effect is not None and found.effect.run_id == request.run_id
    return found if is_of_run else _NOWHERE


async def pending_effects(
    calls: Calls, request: PendingEffectsRequest, timeout: float
) -> PendingEffects:
    """See ``IMemoryProvider.pending_effects``."""
    project = findable_project(request.project)
    asked = {
        "run": findable(request.run_id),
        "after": str(request.after_sequence),
        "limit": request.limit + 1,
    }
    call = project_call(Script.PENDING, project, asked)
    (listed,) = await calls.read(call, timeout=timeout)
    tag, each = tag_in(project), iter(listed)
    found = [
        to_found(tag, receipt_id.decode(errors="replace"), told, kept)
        for receipt_id, told, kept in zip(each, each, each, strict=True)
    ]
    return PendingEffects(tuple(found[: request.limit]), more=len(found) > request.limit)


async def _deliver(
    calls: Calls, project: ProjectKey, asked: dict[str, object], timeout: float
) -> tuple[bool, EffectFound]:
    place = findable_project(project)
    call = project_call(Script.DELIVER, place, asked)
    done, told, kept = await calls.write(call, timeout=timeout)
    return bool(done), to_found(tag_in(place), str(asked["effect"]), told, kept)


def _named(receipt_id: str, run_id: str) -> dict[str, object]:
    return {"effect": findable(receipt_id), "run": findable(run_id)}


def to_found(tag: str, receipt_id: str, told: bytes | None, kept: bytes | None) -> EffectFound:
    """Return the effect that is kept under a receipt id and where its delivery stands.

    Raises:
        StoredDataInvalidError: One of them is damaged, or the effect another. Not retryable.
    """
    if told is None:
        return _NOWHERE
    values: list[Any] = to_list(tag, told)
    try:
        values[-1] = to_time(values[-1])
        if values[2] != receipt_id:
            raise StoredDataInvalidError("a stored effect is another")
        _, _, delivered, code, *fact = orjson.loads(_UNTOUCHED if kept is None else kept)
        return EffectFound(
            to_effect(values),
            taken(bool)(delivered),
            None if code is None else taken(str)(code),
            None if fact == [None, None] else _to_acknowledgement(*fact),
        )
    except DAMAGE:
        raise StoredDataInvalidError("a stored effect is damaged") from None


def _to_acknowledgement(fact_id: Any, sequence: Any) -> Acknowledgement:
    return Acknowledgement(taken(str)(fact_id), taken(int)(sequence))
