"""What a bundle is, how much it may hold, and what an export's answer must be to become one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from broker.domain.errors import BundleIncompleteError, BundleTooLargeError
from providers.exports import Limit
from providers.model import Kind, Record, Revision

FORMAT: Final = "agentweaver.knowledge-transfer.v1"
SCHEMA_VERSION: Final = 1
RECORDS_MAX: Final = 25
REVISIONS_MAX: Final = 500
BYTES_MAX: Final = 1_048_576
"""Of the canonical form: protobuf JSON in UTF-8 with sorted keys and no white space."""

VALUES_MAX: Final = 20_000
"""Of what the objects and lists in the metadata of a bundle hold, in heads and revisions.

Each costs tens of microseconds to write and read, and two bytes are enough for one.
"""

BundleLimit = Literal[Limit, "values"]
_LIMITS: Final[dict[BundleLimit, int]] = {
    "records": RECORDS_MAX,
    "revisions": REVISIONS_MAX,
    "bytes": BYTES_MAX,
    "values": VALUES_MAX,
}
_KIND_ORDER: Final = (Kind.DECISION, Kind.MEMORY)


@dataclass(frozen=True, slots=True)
class Chain:
    """One record with every revision, oldest first."""

    record: Record
    revisions: tuple[Revision, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Whole chains of one agent; decisions first, then memories, each sorted by id."""

    project_id: str
    agent_id: str
    chains: tuple[Chain, ...]


def check_size(limit: BundleLimit, observed: int) -> None:
    """Refuse more than a bundle may hold (004-83).

    Raises:
        BundleTooLargeError: names the limit. Not retryable.
    """
    if observed > _LIMITS[limit]:
        raise too_large(limit)


def too_large(limit: BundleLimit) -> BundleTooLargeError:
    """Return the refusal of more than a limit."""
    most = _LIMITS[limit]
    what = "values in metadata" if limit == "values" else limit
    return BundleTooLargeError(
        f"a bundle holds at most {most} {what}", metadata={"limit": limit, "max": str(most)}
    )


def metadata_values(bundle: Bundle, most: int) -> int:
    """Count what the metadata of a bundle hold, at every depth; stop soon after ``most``."""
    count = 0
    for chain in bundle.chains:
        for each in (chain.record.current, *chain.revisions):
            count += 0 if each.facet is None else _held(each.facet.metadata)
            if count > most:
                return count
    return count


def _held(value: object) -> int:
    """Count what an object or list holds. Its depth was bounded when it was stored."""
    match value:
        case Mapping():
            return len(value) + sum(map(_held, value.values()))
        case list() | tuple():
            return len(value) + sum(map(_held, value))
        case _:
            return 0


def exported(
    project_id: str, agent_id: str, chains: Iterable[tuple[Record, tuple[Revision, ...]]]
) -> Bundle:
    """Return the bundle of what a store answered, in order, if every chain is whole (004-85).

    Raises:
        BundleIncompleteError: a chain has a gap, a link that does not fit, or another head than its
            newest revision. Retryable.
    """
    found = [Chain(record, revisions) for record, revisions in chains]
    if not all(_is_whole(chain) for chain in found):
        raise BundleIncompleteError("the records changed while they were exported; retry")
    found.sort(key=_place)
    return Bundle(project_id, agent_id, tuple(found))


def _is_whole(chain: Chain) -> bool:
    revisions = chain.revisions
    return (
        [each.revision for each in revisions] == list(range(1, len(revisions) + 1))
        and revisions[:1] != ()
        and revisions[0].previous_revision_id is None
        and all(
            after.previous_revision_id == before.revision_id
            for before, after in pairwise(revisions)
        )
        and {each.record_id for each in revisions} == {chain.record.current.record_id}
        and revisions[-1] == chain.record.current
    )


def _place(chain: Chain) -> tuple[int, str]:
    head = chain.record.current
    return _KIND_ORDER.index(head.kind), head.record_id
