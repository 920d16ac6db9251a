"""The links of every revision of a bundle: where they lead, and that no cycle ever stood (004-87).

Links are history here: the head that an import puts on top is replaced by nothing. So a link into
the store closes no cycle, since no record of the store leads to one that is not there yet, and
makes no chain longer.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from broker.domain.errors import ReplacementCycleError, ReplacementInvalidError
from broker.transfer.bundle import Bundle, Chain
from providers.model import Kind, Record, State


@dataclass(frozen=True, slots=True)
class Link:
    """One decision's link to another.

    It stands from ``start`` to the moment before ``end``, which is the next revision's time;
    ``None``: for good. Where both are one time it stands at that time: nobody can tell what came
    first then. ``index`` and ``revision_index`` say where in the bundle it is.
    """

    source: str
    target: str
    start: datetime
    end: datetime | None
    index: int
    revision_index: int

    def stands(self, at: datetime) -> bool:
        """Tell whether the link stands at a time."""
        return self.start <= at and (self.end is None or at < self.end or at == self.start)

    @property
    def path(self) -> str:
        """Where the link is."""
        place = f"bundle.records[{self.index}].revisions[{self.revision_index}]"
        return f"{place}.superseded_by_record_id"


def links_of(bundle: Bundle) -> tuple[Link, ...]:
    """Return every link of every revision, in the order of the bundle."""
    return tuple(link for index, chain in enumerate(bundle.chains) for link in _links(index, chain))


def _links(index: int, chain: Chain) -> Iterator[Link]:
    ends = [*(each.create_time for each in chain.revisions[1:]), None]
    for place, (revision, end) in enumerate(zip(chain.revisions, ends, strict=True)):
        target = revision.superseded_by_record_id
        if target is not None:
            yield Link(revision.record_id, target, revision.create_time, end, index, place)


@dataclass(frozen=True, slots=True)
class Links:
    """Every link of a bundle, and what needs no store to be known about them.

    ``outside`` are the linked records that the bundle does not hold, each once; ``closing`` is a
    link that closed a cycle.
    """

    all: tuple[Link, ...]
    outside: tuple[str, ...]
    closing: Link | None


def judged_links(bundle: Bundle) -> Links:
    """Gather and judge the links of a bundle. On the worst bundle this takes a while."""
    links = links_of(bundle)
    inside = {chain.record.current.record_id for chain in bundle.chains}
    outside = dict.fromkeys(link.target for link in links if link.target not in inside)
    return Links(links, tuple(outside), _closing(links))


def check_links(bundle: Bundle, links: Links, stored: Mapping[str, Record]) -> None:
    """Check every link; ``stored`` holds the heads of the store that links may lead to.

    Raises:
        ReplacementInvalidError: one leads to no decision of the same project and agent.
        ReplacementCycleError: at some time links led from a record back to itself. Neither is
            retryable.
    """
    known = dict(stored) | {chain.record.current.record_id: chain.record for chain in bundle.chains}
    for link in links.all:
        if not _is_decision(known.get(link.target), bundle.agent_id):
            raise ReplacementInvalidError(
                f"{link.path}: must be a decision of the same agent, in the bundle or here",
                metadata={"index": str(link.index)},
            )
    closing = links.closing
    if closing is not None:
        raise ReplacementCycleError(
            f"{closing.path}: leads back to the record", metadata={"index": str(closing.index)}
        )


def _is_decision(record: Record | None, agent_id: str) -> bool:
    if record is None:
        return False
    head = record.current
    return (
        head.kind is Kind.DECISION
        and head.agent_id == agent_id
        and head.state is not State.FORGOTTEN
    )


def _closing(links: Iterable[Link]) -> Link | None:
    """Return a link that closed a cycle at the moment it was made.

    All links of a cycle stand at the start of the youngest of them, so those moments are enough.
    """
    by_source: dict[str, list[Link]] = {}
    for link in links:
        by_source.setdefault(link.source, []).append(link)
    for link in links:
        seen: set[str] = set()
        coming = [link.target]
        while coming:
            record_id = coming.pop()
            if record_id == link.source:
                return link
            if record_id not in seen:
                seen.add(record_id)
                coming += [
                    each.target for each in by_source.get(record_id, ()) if each.stands(link.start)
                ]
    return None
