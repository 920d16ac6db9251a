"""Reads: each is one script, and so one round trip and one moment of the store."""

from collections.abc import Sequence

from providers.chain import check_chain
from providers.counters import GRAPH, TRANSFER, stream
from providers.documents import to_receipt
from providers.errors import StoredDataInvalidError
from providers.findable import all_findable, findable, findable_project
from providers.model import (
    IdempotencyReceipt,
    ProjectKey,
    ReceiptKey,
    Record,
    Revision,
    RevisionRef,
)
from providers.redis import keys
from providers.redis.calls import Calls, project_call
from providers.redis.rows import to_holder, to_link, to_list, to_record, to_revision
from providers.redis.scripts import Script
from providers.requests import Loaded, LoadRequest, RevisionsPage, RevisionsRequest

CHAIN_LINKS_MAX = 66
BIGGEST = 2**53 - 1
"""The biggest number that scripts compare exactly."""


def tag_in(project: ProjectKey) -> str:
    """Return what the documents of a project begin with."""
    return keys.tag_of(keys.project_digest(project))


async def load(calls: Calls, request: LoadRequest, timeout: float) -> Loaded:
    """See ``IMemoryProvider.load``."""
    project = findable_project(request.project)
    receipt, names = request.receipt, _counters(request)
    asked = {
        "heads": list(dict.fromkeys(all_findable(request.record_ids))),
        "revisions": [_field(ref) for ref in request.revisions],
        "receipt": None if receipt is None else _receipt_field(receipt),
        "keys": all_findable(request.keys),
        "counters": names,
        "chain": None if request.chain_from is None else findable(request.chain_from),
        "links": CHAIN_LINKS_MAX,
    }
    call = project_call(Script.LOAD, project, asked)
    kept, holders, counters, heads, revisions, chain = await calls.read(call, timeout=timeout)
    tag = keys.tag_of(call.digest)
    found = {key: to_holder(each) for key, each in zip(request.keys, holders, strict=True)}
    stands = {name: _to_count(each) for name, each in zip(names, counters, strict=True)}
    return Loaded(
        heads=_to_heads(tag, heads),
        revisions=_to_revisions(tag, request.revisions, revisions),
        receipt=_to_receipt(tag, kept, receipt),
        keys={key: holder for key, holder in found.items() if holder is not None},
        chain=tuple(to_link(tag, each) for each in chain),
        graph=stands.get(GRAPH, 0),
        transfer=stands.get(TRANSFER, 0),
        stream=stands.get(_stream(request), 0),
    )


async def revisions(calls: Calls, request: RevisionsRequest, timeout: float) -> RevisionsPage:
    """See ``IMemoryProvider.revisions``."""
    asked = {
        "record": findable(request.record_id),
        "agent": findable(request.agent_id),
        "before": None if request.before is None else max(1, min(request.before, BIGGEST)),
        "limit": request.limit,
        "brief": request.brief,
        "bytes": request.bytes_max,
    }
    call = project_call(Script.REVISIONS, findable_project(request.project), asked)
    newest, *rest = await calls.read(call, timeout=timeout)
    if not rest:
        return RevisionsPage(found=False)
    more, page = rest
    tag, whole = keys.tag_of(call.digest), 0 if request.brief else len(page) - more
    found = [to_revision(tag, each, brief=at >= whole) for at, each in enumerate(page)]
    check_chain(found[::-1], request.record_id, int(newest))
    shown = found[:-1] if more else found
    return RevisionsPage(found=True, revisions=tuple(shown), more=bool(more))


def _field(ref: RevisionRef) -> str:
    return keys.revision_field(RevisionRef(findable(ref.record_id), ref.revision))


def _receipt_field(key: ReceiptKey) -> str:
    return keys.receipt_field(findable(key.actor_fingerprint), findable(key.idempotency_key))


def _counters(request: LoadRequest) -> list[str]:
    names = [GRAPH] if request.graph else []
    if request.transfer:
        names.append(TRANSFER)
    if request.stream_run_id is not None:
        names.append(_stream(request))
    return names


def _stream(request: LoadRequest) -> str:
    return stream(findable(request.stream_run_id or ""))


def _to_count(value: bytes | None) -> int:
    if not (value or b"0").isdigit():
        raise StoredDataInvalidError("a stored counter is damaged")
    return int(value or 0)


def _to_heads(tag: str, found: Sequence[bytes]) -> dict[str, Record]:
    heads = {}
    for record_id, head, document in zip(*[iter(found)] * 3, strict=True):
        record = to_record(tag, head, document)
        if record.current.record_id.encode() != record_id:
            raise StoredDataInvalidError("a stored head is of another record")
        heads[record.current.record_id] = record
    return heads


def _to_revisions(
    tag: str, asked: Sequence[RevisionRef], found: Sequence[bytes | None]
) -> dict[RevisionRef, Revision]:
    revisions = {}
    for ref, document in zip(asked, found, strict=True):
        if document is None:
            continue
        revision = to_revision(tag, document)
        if RevisionRef(revision.record_id, revision.revision) != ref:
            raise StoredDataInvalidError("a stored revision is another")
        revisions[ref] = revision
    return revisions


def _to_receipt(
    tag: str, document: bytes | None, key: ReceiptKey | None
) -> IdempotencyReceipt | None:
    if document is None or key is None:
        return None
    return to_receipt(to_list(tag, document), key)
