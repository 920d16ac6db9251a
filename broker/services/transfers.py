"""The use cases that move records between brokers: export and import of bundles."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import (
    BundleInvalidError,
    ContentRefusedError,
    RecordNotFoundError,
    TombstonedError,
    Violation,
)
from broker.domain.fields import (
    BATCH_MAX,
    IDEMPOTENCY_KEY_MAX,
    Violations,
    check_identifier,
    check_scope,
    refuse_if_any,
)
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.ports import Clock
from broker.domain.records import Stamp
from broker.memory.admission import flagged, has_flag, judged, retold, steers
from broker.memory.holding import barred, holders_of
from broker.memory.keys import content_key_of
from broker.services.access import Access, AccessPath, Settled, Write
from broker.services.turns import Turns
from broker.transfer.bundle import (
    BYTES_MAX,
    RECORDS_MAX,
    REVISIONS_MAX,
    VALUES_MAX,
    Bundle,
    check_size,
    exported,
    metadata_values,
    too_large,
)
from broker.transfer.given import BundleSource, ExportRecords, Imported, ImportRecords
from broker.transfer.importer import conflict, heads_of
from broker.transfer.links import Links, judged_links
from broker.transfer.verify import check_counts, check_label, checked_bundle
from providers.capabilities import Capability
from providers.errors import StoredDataInvalidError
from providers.exports import ExportRequest
from providers.model import Content, HeadPut, ReceiptKey, Record, RevisionRef, WriteSet
from providers.requests import Loaded, LoadRequest

IMPORT: Final = "ImportRecords"


class Measured(Protocol):
    """A bundle in the form of the edge; ``size`` is that of its canonical form, in bytes."""

    @property
    def size(self) -> int:
        """Bytes of the canonical form."""
        ...


M = TypeVar("M", bound=Measured)


@dataclass(frozen=True, slots=True)
class _Said:
    """What one head on top may say, the key of that, and whether it is flagged."""

    content: Content
    key: str
    flagged: bool


@dataclass(frozen=True, slots=True)
class _Checked:
    """A bundle that passed every check that needs no store.

    Beside it: its links, the SHA-256 of its form, and what becomes of its heads, in its order.
    """

    bundle: Bundle
    links: Links
    digest: str
    heads: tuple[_Said, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of what the heads say."""
        return tuple(each.key for each in self.heads)


class Transfers(Generic[M]):
    """Exports and imports behind the checks of ``AccessPath``.

    Large bundles are written and read in a thread, one at a time: other calls go on meanwhile.
    """

    def __init__(
        self,
        access: AccessPath,
        clock: Clock,
        new_id: Callable[[], str],
        write: Callable[[Bundle], M],
    ) -> None:
        """Take the path of checks, the clock, a source of UUIDs (version 7), and what writes."""
        self._access = access
        self._clock = clock
        self._new_id = new_id
        self._form = write
        self._turns = Turns()

    async def export(self, call: Call, request: ExportRecords) -> M:
        """Return whole histories, all of one moment (004-82, 004-83, 004-85)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        _check_ids(request.record_ids)
        access = await self._access.enter(authorized, Capability.REVISIONS)
        wanted = ExportRequest(
            project=access.project,
            agent_id=request.scope.agent_id,
            record_ids=tuple(dict.fromkeys(request.record_ids)),
            records_max=RECORDS_MAX,
            revisions_max=REVISIONS_MAX,
            bytes_max=BYTES_MAX,
        )
        found = await self._access.read(
            access, lambda provider, timeout: provider.export(wanted, timeout=timeout)
        )
        if found.exceeded is not None:
            raise too_large(found.exceeded)
        bundle = exported(request.scope.project_id, request.scope.agent_id, found.chains)
        if not {*request.record_ids} <= {each.record.current.record_id for each in bundle.chains}:
            raise RecordNotFoundError
        return await self._turns.run(call, lambda: self._written(bundle))

    def _written(self, bundle: Bundle) -> M:
        """Write a bundle once, if it is not too large."""
        check_size("values", metadata_values(bundle, VALUES_MAX))
        written = self._form(bundle)
        check_size("bytes", written.size)
        return written

    async def import_(self, call: Call, request: ImportRecords) -> Imported:
        """Write every record of a bundle or none; or only check it (004-86, 004-87, 004-88)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        key = request.idempotency_key
        check_identifier(violations, "idempotency_key", key, IDEMPOTENCY_KEY_MAX)
        refuse_if_any(violations)
        check_label(request.bundle, request.scope)
        check_counts(request.bundle)
        form = await self._turns.run(call, lambda: _canonical(request.bundle))
        checked = await self._turns.run(call, lambda: self._checked(request.bundle, form))
        access = await self._access.enter(authorized, Capability.WRITE)
        write = self._write(access, request, checked)
        if request.validate_only:
            write_set = await self._access.rehearse(access, write)
            return _reply(request, write_set, replayed=False)
        settled = await self._access.write(access, write)
        if settled.write_set is None:
            return Imported(request.scope.project_id, _heads_left(settled), replayed=True)
        return _reply(request, settled.write_set, replayed=False)

    def _checked(self, source: BundleSource, canonical: bytes | None) -> _Checked:
        """Look at every record."""
        bundle = checked_bundle(source, self._clock.now())
        if canonical is None:
            raise BundleInvalidError((Violation("bundle", "must have a form as JSON"),))
        digest = hashlib.sha256(canonical).hexdigest()
        return _Checked(bundle, judged_links(bundle), digest, _said(bundle))

    def _write(self, access: Access, request: ImportRecords, checked: _Checked) -> Write:
        bundle, keys = checked.bundle, checked.keys
        key = ReceiptKey(access.call.caller.actor_fingerprint, request.idempotency_key)
        request_print = fingerprint(IMPORT, request.scope, {"bundle": checked.digest})

        def decide(loaded: Loaded, _: Authorized) -> WriteSet | LoadRequest:
            stamp = Stamp(self._clock.now(), self._new_id, key.actor_fingerprint)
            made = heads_of(bundle, checked.links, loaded.heads, request.scope.run_id, stamp)
            holders = holders_of(keys, loaded)
            if holders:
                return LoadRequest(project=access.project, record_ids=holders)
            heads = tuple(_admitted(made, checked, loaded))
            current = [put.record.current for put in heads]
            return WriteSet(
                project=access.project,
                receipt=receipt_for(
                    key=key,
                    method=IMPORT,
                    fingerprint=request_print,
                    refs=tuple(RevisionRef(each.record_id, each.revision) for each in current),
                    create_time=stamp.now,
                ),
                heads=heads,
                history=tuple(each for chain in bundle.chains for each in chain.revisions),
                graph_expected=loaded.graph,
                transfer_expected=loaded.transfer,
            )

        inside = tuple(chain.record.current.record_id for chain in bundle.chains)
        return Write(
            method=IMPORT,
            key=key,
            fingerprint=request_print,
            load=LoadRequest(
                project=access.project,
                record_ids=(*inside, *checked.links.outside),
                receipt=key,
                keys=tuple(dict.fromkeys(keys)),
                graph=True,
                transfer=True,
            ),
            decide=decide,
            exists=lambda record_id: conflict(bundle, record_id),
        )


def _canonical(source: BundleSource) -> bytes | None:
    """Measure: how many values there are, before any is read, and then the canonical form."""
    check_size("values", source.values(VALUES_MAX))
    canonical = source.canonical()
    if canonical is not None:
        check_size("bytes", len(canonical))
    return canonical


def _said(bundle: Bundle) -> tuple[_Said, ...]:
    """Judge what the heads on top say; what histories say is left as it was.

    Raises:
        ContentRefusedError: names the fields by their paths in the bundle. Not retryable.
    """
    said: list[_Said] = []
    refused: list[Violation] = []
    for index, chain in enumerate(bundle.chains):
        last = chain.record.current
        content, violations = judged(last.content, last.facet)
        path = f"bundle.records[{index}].record"
        refused += [Violation(f"{path}.{each.field}", each.rule) for each in violations]
        key = content_key_of(replace(last, content=content))
        said.append(_Said(content, key, has_flag(last) or steers(content, last.facet)))
    if refused:
        raise ContentRefusedError(tuple(refused))
    return tuple(said)


def _admitted(made: tuple[HeadPut, ...], checked: _Checked, loaded: Loaded) -> Iterator[HeadPut]:
    """Give the heads with what they may say.

    They claim no key: a bundle that is full would not fit into one commit. That no tombstone comes
    in between is the transfer counter's work, which was read of the same moment as the keys.

    Raises:
        TombstonedError: tells which record says what may not be said again. Not retryable.
    """
    for index, (put, said) in enumerate(zip(made, checked.heads, strict=True)):
        if barred(said.key, put.record.current.record_id, loaded):
            raise TombstonedError(
                f"bundle.records[{index}]: the content was forgotten or rejected",
                metadata={"index": str(index)},
            )
        yield flagged(retold(put, said.content), is_flagged=said.flagged)


def _check_ids(record_ids: tuple[str, ...]) -> None:
    violations: Violations = []
    if len(record_ids) > BATCH_MAX:
        violations.append(Violation("record_ids", f"must be at most {BATCH_MAX}"))
    for index, record_id in enumerate(record_ids[:BATCH_MAX]):
        check_identifier(violations, f"record_ids[{index}]", record_id)
    refuse_if_any(violations)


def _reply(request: ImportRecords, write_set: WriteSet, *, replayed: bool) -> Imported:
    heads = tuple(put.record for put in write_set.heads)
    return Imported(request.scope.project_id, heads, replayed=replayed)


def _heads_left(settled: Settled) -> tuple[Record, ...]:
    """Return the heads an import left, as they were then.

    Raises:
        StoredDataInvalidError: the receipt names what is not there. Not retryable.
    """
    found = settled.loaded
    try:
        return tuple(
            Record(found.revisions[ref], found.heads[ref.record_id].create_time)
            for ref in settled.receipt.refs
        )
    except LookupError as error:
        raise StoredDataInvalidError("a receipt names no revision that is there") from error
