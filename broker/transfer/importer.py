"""What an import makes of a checked bundle: heads on top of histories, or a refusal."""

from collections.abc import Mapping
from dataclasses import replace

from broker.domain.errors import BundleConflictError
from broker.domain.facets import OPERATOR_SOURCES
from broker.domain.records import Stamp, successor
from broker.transfer.bundle import Bundle, Chain
from broker.transfer.links import Links, check_links
from providers.model import (
    ChangeKind,
    HeadPut,
    MemoryFacet,
    OriginTier,
    Record,
    Revision,
    SourceType,
    State,
    Trust,
)


def heads_of(
    bundle: Bundle, links: Links, stored: Mapping[str, Record], run_id: str, stamp: Stamp
) -> tuple[HeadPut, ...]:
    """Return the heads that an import puts, in the order of the bundle.

    ``links`` are the bundle's; ``stored`` holds what there is of its records and of what they link
    to.

    Raises:
        BundleConflictError, ReplacementInvalidError, ReplacementCycleError: not retryable.
    """
    for chain in bundle.chains:
        if chain.record.current.record_id in stored:
            raise conflict(bundle, chain.record.current.record_id)
    check_links(bundle, links, stored)
    return tuple(imported(chain, run_id, stamp) for chain in bundle.chains)


def imported(chain: Chain, run_id: str, stamp: Stamp) -> HeadPut:
    """Return the head on top of a history: the text of its last revision, and nothing of its rank.

    It is active, pending and replaced by nothing, whatever it was at home; it comes from the
    importing run, and its origin counts as external (004-88). A source that only operators may
    claim becomes an external one, whoever imports; what confirmed the text at home is not counted.
    """
    last = chain.record.current
    after = replace(
        last,
        facet=_facet(last),
        state=State.ACTIVE,
        trust=Trust.PENDING,
        source_run_id=run_id,
        source_session_id=None,
        promoted_decision_id=None,
        superseded_by_record_id=None,
    )
    put = successor(chain.record, after, reason=None, change_kind=ChangeKind.IMPORTED, stamp=stamp)
    return replace(put, expected_revision=None)


def _facet(last: Revision) -> MemoryFacet | None:
    if last.facet is None:
        return None
    source = last.facet.source_type
    return replace(
        last.facet,
        source_type=SourceType.EXTERNAL if source in OPERATOR_SOURCES else source,
        origin_tier=OriginTier.EXTERNAL,
        corroboration=0,
        last_reinforce_time=None,
        invalidate_time=None,
        invalidation_reason=None,
    )


def conflict(bundle: Bundle, record_id: str) -> BundleConflictError:
    """Return the refusal of a record that, or a revision of which, is there already.

    It says which of the bundle's records, and nothing of what is there.
    """
    ids = [chain.record.current.record_id for chain in bundle.chains]
    index = ids.index(record_id)
    return BundleConflictError(
        f"bundle.records[{index}]: the record, or a revision of it, is there already",
        metadata={"index": str(index)},
    )
