"""The use case that forgets a memory."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import RecordNotFoundError
from broker.domain.fields import (
    IDEMPOTENCY_KEY_MAX,
    REASON_MAX,
    Violations,
    check_identifier,
    check_positive,
    check_scope,
    check_text,
    refuse_if_any,
)
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.memories import Forget, Forgotten
from broker.domain.records import check_expected, visible
from broker.memory.admission import refuse_secret
from broker.memory.changes import check_forgettable, check_may_forget, forgotten
from broker.memory.holding import Standing, holders_of, standing
from broker.memory.keys import belief_key_of, content_key_of
from broker.services.access import Access, AccessPath, Write
from broker.services.head_writer import HeadWriter
from providers.capabilities import Capability
from providers.model import (
    Claim,
    ClaimRelease,
    ReceiptKey,
    Record,
    RevisionRef,
    Tombstone,
    WriteSet,
)
from providers.requests import Loaded, LoadRequest

FORGET: Final = "Forget"
TOMBSTONE_KIND: Final = "forgotten"


class Forgetting:
    """Forgets memories behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, writer: HeadWriter) -> None:
        """Take the path of checks and what stamps writes."""
        self._access = access
        self._writer = writer

    async def forget(self, call: Call, request: Forget) -> Forgotten:
        """Forget a memory; what is not there is no error (R1, 003-05).

        Its text may not be said again, unless another memory that is in use says it now: that one
        is forgotten by itself.

        Raises:
            StaleRevisionError: at another revision. Read it again first.
            StateNotAllowedError, TokenBoundError: not retryable.
        """
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        _check(request)
        access = await self._access.enter(authorized, Capability.WRITE)
        access.bound.require(Capability.RECALL)
        try:
            settled = await self._access.write(access, self._write(access, request))
        except RecordNotFoundError:
            return Forgotten(found=False, replayed=False)
        return Forgotten(found=True, replayed=settled.write_set is None)

    def _write(self, access: Access, request: Forget) -> Write:
        key = ReceiptKey(access.call.caller.actor_fingerprint, request.idempotency_key)
        fields = {
            "record_id": request.record_id,
            "expected_revision": request.expected_revision,
            "reason": request.reason,
        }
        request_print = fingerprint(FORGET, request.scope, fields)

        def decide(loaded: Loaded, _second: Authorized) -> WriteSet | LoadRequest:
            record = _forgettable(loaded, request, bound=access.call.caller.bound)
            asked = _asked(access, record, loaded)
            if asked is not None:
                return asked
            stamp = self._writer.stamp(access.call)
            put = forgotten(record, reason=request.reason or None, stamp=stamp)
            after = put.record.current
            receipt = receipt_for(
                key=key,
                method=FORGET,
                fingerprint=request_print,
                refs=(RevisionRef(after.record_id, after.revision),),
                create_time=after.create_time,
                outcome={"found": True},
            )
            text = content_key_of(record.current)
            teller = _teller(text, record, loaded, at=after.create_time)
            written = WriteSet(
                project=access.project,
                receipt=receipt,
                heads=(put,),
                releases=_releases(record),
            )
            if teller is not None:  # holds the key as it does now, or this is decided again
                return replace(written, claims=(Claim(text, teller, held_by=teller),))
            buried = Tombstone(text, TOMBSTONE_KIND, after.create_time)
            return replace(written, tombstones=(buried,))

        return Write(
            method=FORGET,
            key=key,
            fingerprint=request_print,
            load=LoadRequest(project=access.project, receipt=key, record_ids=(request.record_id,)),
            decide=decide,
        )


def _check(request: Forget) -> None:
    violations: Violations = []
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    check_identifier(violations, "record_id", request.record_id)
    check_positive(violations, "expected_revision", request.expected_revision)
    check_text(violations, "reason", request.reason, REASON_MAX, controls=False)
    refuse_if_any(violations)
    refuse_secret("reason", request.reason)


def _forgettable(loaded: Loaded, request: Forget, *, bound: bool) -> Record:
    record = visible(loaded.heads.get(request.record_id), request.scope.agent_id)
    check_forgettable(record.current)
    check_may_forget(record.current, bound=bound)
    check_expected(record, request.expected_revision)
    return record


def _releases(record: Record) -> tuple[ClaimRelease, ...]:
    key = belief_key_of(record.current)
    return () if key is None else (ClaimRelease(key, record.current.record_id),)


def _asked(access: Access, record: Record, loaded: Loaded) -> LoadRequest | None:
    """Return what has to be known first: who says the same now."""
    key = content_key_of(record.current)
    asked = () if key in loaded.keys else (key,)
    holders = holders_of((key,), loaded)
    if not asked and not holders:
        return None
    return LoadRequest(project=access.project, keys=asked, record_ids=holders)


def _teller(key: str, record: Record, loaded: Loaded, *, at: datetime) -> str | None:
    """Return the other memory that is in use and says the same, if there is one."""
    held_by = loaded.keys[key].record_id
    holder = loaded.heads.get(held_by or "")
    if held_by == record.current.record_id or holder is None:
        return None
    return held_by if standing(holder, key, at) is Standing.LIVE else None
