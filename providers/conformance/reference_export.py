"""How the reference moves histories: it looks at every head and follows every link."""

from copy import deepcopy
from itertools import pairwise

from providers.conformance.reference_pages import text_size
from providers.conformance.reference_shelves import ReferenceParts, Shelf
from providers.errors import StoredDataInvalidError
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound, Limit
from providers.model import Kind, Record, Revision, RevisionRef, State

EXPORTED = frozenset({Kind.MEMORY, Kind.DECISION})


class ReferenceExport(ReferenceParts):
    """The part of the reference that exports chains and finds tombstones."""

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        """See ``IMemoryProvider.export``."""
        shelf = self._opened(request.project)
        names = self._reached(shelf, request) if request.record_ids else set(shelf.heads)
        heads = [head for name in names if (head := self._exported(shelf, name, request.agent_id))]
        exceeded = self._exceeded(shelf, heads, request)
        if exceeded is not None:
            return Export((), exceeded)
        heads.sort(key=lambda head: (head.current.kind.value, head.current.record_id))
        return deepcopy(Export(tuple((head, self._chain_of(shelf, head)) for head in heads)))

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        """See ``IMemoryProvider.tombstones``."""
        shelf = self._opened(request.project)
        buried = sorted(set(request.keys) & set(shelf.tombstones))
        return deepcopy(KeysFound(tuple(shelf.tombstones[key] for key in buried)))

    # -------------------- which records

    def _exported(self, shelf: Shelf, record_id: str, agent_id: str) -> Record | None:
        head = self._head(shelf, record_id)
        if head is None:
            return None
        now = head.current
        mine = now.agent_id == agent_id and now.kind in EXPORTED
        return head if mine and now.state is not State.FORGOTTEN else None

    def _reached(self, shelf: Shelf, request: ExportRequest) -> set[str]:
        """Follow links from the records asked for, as far as they lead through the agent's own."""
        reached: set[str] = set()
        coming = list(request.record_ids)
        while coming:
            name = coming.pop()
            head = self._exported(shelf, name, request.agent_id)
            if head is not None and name not in reached:
                reached.add(name)
                coming += self._links_of(shelf, head)
        return reached

    def _links_of(self, shelf: Shelf, head: Record) -> list[str]:
        links = [each.superseded_by_record_id for each in self._stored(shelf, head)]
        return [each for each in links if each is not None]

    # -------------------- how much

    def _exceeded(self, shelf: Shelf, heads: list[Record], request: ExportRequest) -> Limit | None:
        if len(heads) > request.records_max:
            return "records"
        if sum(head.current.revision for head in heads) > request.revisions_max:
            return "revisions"
        size = sum(text_size(each) for head in heads for each in self._stored(shelf, head))
        return "bytes" if size > request.bytes_max else None

    # -------------------- their chains

    def _stored(self, shelf: Shelf, head: Record) -> list[Revision]:
        refs = (RevisionRef(head.current.record_id, n + 1) for n in range(head.current.revision))
        return [shelf.revisions[ref] for ref in refs if ref in shelf.revisions]

    def _chain_of(self, shelf: Shelf, head: Record) -> tuple[Revision, ...]:
        chain = self._stored(shelf, head)
        linked = all(b.previous_revision_id == a.revision_id for a, b in pairwise(chain))
        if len(chain) != head.current.revision or not linked or chain[-1] != head.current:
            raise StoredDataInvalidError("a stored chain is not whole")
        return tuple(chain)
