"""Histories on the move: whole chains of one moment, and the tombstones an import asks for."""

from collections.abc import Sequence

from providers.chain import check_chain
from providers.errors import StoredDataInvalidError
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound, Limit
from providers.findable import all_findable, findable, findable_project
from providers.heads import is_moved
from providers.model import Record, Revision
from providers.redis import keys
from providers.redis.calls import Calls, project_call
from providers.redis.rows import to_record, to_revision, to_tombstone
from providers.redis.scripts import Script

_LIMITS: dict[bytes, Limit] = {
    b"records": "records",
    b"revisions": "revisions",
    b"bytes": "bytes",
}
# More than any store holds in one project, and small enough to add one.
_LIMIT_MAX = 2**52


async def export(calls: Calls, request: ExportRequest, timeout: float) -> Export:
    """See ``IMemoryProvider.export``."""
    most = (request.records_max, request.revisions_max, request.bytes_max)
    asked = {
        "agent": findable(request.agent_id),
        "records": all_findable(request.record_ids),
        "most": [min(each, _LIMIT_MAX) for each in most],
    }
    call = project_call(Script.EXPORT, findable_project(request.project), asked)
    passed, *rest = await calls.read(call, timeout=timeout)
    if passed:
        return Export((), _LIMITS[passed])
    tag, found = keys.tag_of(call.digest), iter(rest[0])
    chains = [_chain(tag, head, documents) for head, documents in zip(found, found, strict=True)]
    return Export(tuple(sorted(chains, key=_place)))


async def tombstones(calls: Calls, request: KeyQuery, timeout: float) -> KeysFound:
    """See ``IMemoryProvider.tombstones``."""
    named = sorted(set(all_findable(request.keys)), key=str.encode)
    asked = {
        "heads": [],
        "revisions": [],
        "receipt": None,
        "keys": named,
        "counters": [],
        "chain": None,
    }
    call = project_call(Script.LOAD, findable_project(request.project), asked)
    _, holders, *_ = await calls.read(call, timeout=timeout)
    found = zip(named, holders, strict=True)
    return KeysFound(
        tuple(to_tombstone(key, value) for key, value in found if value and value[:1] != b"r")
    )


def _chain(
    tag: str, head: bytes, documents: Sequence[bytes]
) -> tuple[Record, tuple[Revision, ...]]:
    record = to_record(tag, head, documents[-1])
    now = record.current
    revisions = [to_revision(tag, each) for each in documents[:-1]]
    check_chain([*revisions, now], now.record_id, now.revision)
    if len(documents) != now.revision or not is_moved(now):
        raise StoredDataInvalidError("a stored history has a gap")
    return record, (*revisions, now)


def _place(chain: tuple[Record, tuple[Revision, ...]]) -> tuple[str, bytes]:
    now = chain[0].current
    return now.kind.value, now.record_id.encode()
