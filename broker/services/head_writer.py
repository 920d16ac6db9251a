"""Writes one head with its receipt, and builds the reply: what every single-record write shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.fields import (
    IDEMPOTENCY_KEY_MAX,
    REASON_MAX,
    Violations,
    check_identifier,
    check_positive,
    check_text,
)
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.ports import Clock
from broker.domain.records import Stamp, check_expected, visible
from broker.domain.requests import ChangeRecord, ScopeInput, UpdateRecord, Written
from broker.memory.holding import keeping
from broker.services.access import Access, AccessPath, Settled, Write
from providers.errors import StoredDataInvalidError
from providers.model import (
    HeadPut,
    ProjectKey,
    ReceiptKey,
    Record,
    Revision,
    RevisionRef,
    WriteSet,
)
from providers.requests import Loaded, LoadRequest

Decide = Callable[[Loaded, Authorized], HeadPut]
Admit = Callable[[Revision, Authorized], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadWrite:
    """One write of one head.

    ``fields`` are the normalised fields of the request beside its scope. ``admit`` refuses callers
    who may not write, or be told of, a record such as the one that was found. With ``graph`` the
    write expects the decision graph as it was loaded, and advances it. ``keys`` are those of the
    text as far as they are known before anything is loaded. ``blind`` is for what is decided
    without anything that is loaded, as a rule; see ``Write``.
    """

    method: str
    scope: ScopeInput
    idempotency_key: str
    fields: Mapping[str, object]
    decide: Decide
    admit: Admit = lambda _revision, _authorized: None
    keys: tuple[str, ...] = ()
    record_ids: tuple[str, ...] = ()
    revisions: tuple[RevisionRef, ...] = ()
    chain_from: str | None = None
    graph: bool = False
    blind: bool = False


class HeadWriter:
    """Takes writes of one head through the path of checks."""

    def __init__(self, access: AccessPath, clock: Clock, new_id: Callable[[], str]) -> None:
        """Take the path of checks, the clock, and a source of UUIDs (version 7)."""
        self._access = access
        self._clock = clock
        self._new_id = new_id

    def stamp(self, call: Call) -> Stamp:
        """Return what one decision of a call is stamped with."""
        return Stamp(self._clock.now(), self._new_id, call.caller.actor_fingerprint)

    async def write(self, access: Access, write: HeadWrite) -> Written:
        """Write one head; reply with it, or with the revision that an earlier request left."""
        key = ReceiptKey(access.call.caller.actor_fingerprint, write.idempotency_key)
        request_print = fingerprint(write.method, write.scope, write.fields)

        def decide(loaded: Loaded, second: Authorized) -> WriteSet | LoadRequest:
            put = write.decide(loaded, second)
            after = put.record.current
            receipt = receipt_for(
                key=key,
                method=write.method,
                fingerprint=request_print,
                refs=(RevisionRef(after.record_id, after.revision),),
                create_time=after.create_time,
            )
            write_set = WriteSet(
                project=access.project,
                receipt=receipt,
                heads=(put,),
                graph_expected=loaded.graph if write.graph else None,
            )
            return keeping(write_set, loaded)

        settled = await self._access.write(
            access,
            Write(
                method=write.method,
                key=key,
                fingerprint=request_print,
                load=_load_request(access.project, key, write),
                decide=decide,
                blind=write.blind,
            ),
        )
        replayed = settled.write_set is None
        head = heads_left(settled)[0]
        if replayed:
            write.admit(head.current, settled.authorized)
        return Written(write.scope.project_id, head, replayed=replayed)


def expected_head(loaded: Loaded, request: ChangeRecord | UpdateRecord) -> Record:
    """Return the head a request means, at the revision it expects.

    Raises:
        RecordNotFoundError: absent, of another agent, or forgotten. Not retryable.
        StaleRevisionError: at another revision. Read it again first.
    """
    record = visible(loaded.heads.get(request.record_id), request.scope.agent_id)
    check_expected(record, request.expected_revision)
    return record


def check_change(violations: Violations, request: ChangeRecord | UpdateRecord) -> None:
    """Check the fields that every change of a record has."""
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    check_identifier(violations, "record_id", request.record_id)
    check_positive(violations, "expected_revision", request.expected_revision)
    check_text(violations, "reason", request.reason, REASON_MAX, controls=False)


def _load_request(project: ProjectKey, key: ReceiptKey, write: HeadWrite) -> LoadRequest:
    return LoadRequest(
        project=project,
        receipt=key,
        keys=write.keys,
        record_ids=write.record_ids,
        revisions=write.revisions,
        chain_from=write.chain_from,
        graph=write.graph,
    )


def heads_left(settled: Settled) -> tuple[Record, ...]:
    """Return the heads a write left, as they were then, in the order of its receipt.

    Raises:
        StoredDataInvalidError: a revision that the receipt names is not there.
    """
    if settled.write_set is not None:
        return tuple(put.record for put in settled.write_set.heads)
    loaded = settled.loaded
    try:
        heads = tuple(
            Record(loaded.revisions[ref], loaded.heads[ref.record_id].create_time)
            for ref in settled.receipt.refs
        )
    except LookupError as error:
        raise StoredDataInvalidError("a receipt names a revision that is not there") from error
    if not heads:
        raise StoredDataInvalidError("a receipt names no revision")
    return heads
