"""Requests of the wire to the domain, and what the domain answers to messages.

Reading never fails: what has no meaning becomes ``UNKNOWN`` for the field checks to refuse. These
functions are on the path of every call, before anybody asked the owner about it: of lists that pass
their limit only so much is read that the limit is seen to be passed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from broker.api.v1 import proposal_service_pb2, record_pb2, record_service_pb2
from broker.domain.facets import MASK_PATHS_MAX, METADATA_BYTES_MAX
from broker.domain.fields import FILTER_MAX, TAGS_GIVEN_MAX, TAGS_MAX
from broker.domain.requests import (
    TOO_LARGE,
    UNKNOWN,
    ChangeRecord,
    ContentInput,
    FacetInput,
    ScopeInput,
    TooLarge,
    Unknown,
)
from broker.server.vocabulary import (
    BELIEF_TYPES,
    CHANGE_KINDS,
    DELIVERY_POLICIES,
    FULL_VIEWS,
    KINDS,
    MEMORY_KINDS,
    ORIGIN_TIERS,
    PORTABILITIES,
    SENSITIVITIES,
    SOURCE_TYPES,
    STATES,
    TRUSTS,
)
from broker.server.wellknown import bound_of, mapping_of, put_struct, put_time, time_of
from providers.model import MemoryFacet, Record, Revision
from providers.requests import BRIEF_LENGTH

METADATA_WIRE_BYTES_MAX: Final = 4 * METADATA_BYTES_MAX
"""A Struct takes less than four times the bytes of its JSON, whatever is in it."""

SNIPPET_LENGTH: Final = BRIEF_LENGTH
"""Code points of content that view BASIC shows: as many as a brief page holds."""

_Message = TypeVar("_Message", record_pb2.Record, record_pb2.Revision)

# -------------------- in


def scope_input(message: record_pb2.Scope) -> ScopeInput:
    """Read a scope; an absent one reads as three empty strings."""
    return ScopeInput(message.project_id, message.run_id, message.agent_id)


def content_input(
    message: record_service_pb2.CreateRecordRequest
    | record_service_pb2.UpdateRecordRequest
    | proposal_service_pb2.CreateProposalRequest,
) -> ContentInput:
    """Read the content set."""
    return ContentInput(
        type=message.type,
        title=message.title,
        content=message.content,
        rationale=message.rationale,
        importance=message.importance if message.HasField("importance") else None,
        tags=tuple(message.tags[: TAGS_GIVEN_MAX + 1]),
    )


def facet_input(message: Any) -> FacetInput | None:
    """Read the facet of a message where it has one. Output-only fields are ignored (AIP-203)."""
    if not message.HasField("facet"):
        return None
    facet = message.facet
    return FacetInput(
        memory_kind=MEMORY_KINDS.word(facet.memory_kind),
        delivery_policy=DELIVERY_POLICIES.word(facet.delivery_policy),
        namespace=facet.namespace,
        subject=facet.subject,
        belief_type=BELIEF_TYPES.word(facet.belief_type),
        source=facet.source,
        source_type=SOURCE_TYPES.word(facet.source_type),
        sensitivity=SENSITIVITIES.word(facet.sensitivity),
        expire_time=time_of(facet.expire_time) if facet.HasField("expire_time") else None,
        confidence=facet.confidence if facet.HasField("confidence") else None,
        epoch=facet.epoch,
        portability=PORTABILITIES.word(facet.portability),
        metadata=_metadata(facet),
    )


def _metadata(facet: record_pb2.MemoryFacet) -> Mapping[str, object] | TooLarge | None:
    if not facet.HasField("metadata"):
        return None
    if facet.metadata.ByteSize() > METADATA_WIRE_BYTES_MAX:
        return TOO_LARGE
    return mapping_of(facet.metadata)


def search_fields(message: Any) -> dict[str, Any]:
    """Read the fields that every search has: filters, page, view."""
    return {
        "query": message.query,
        "kinds": tuple(map(KINDS.word, message.kinds[: FILTER_MAX + 1])),
        "states": tuple(map(STATES.word, message.states[: FILTER_MAX + 1])),
        "trusts": tuple(map(TRUSTS.word, message.trusts[: FILTER_MAX + 1])),
        "tags": tuple(message.tags[: TAGS_MAX + 1]),
        "importance_min": optional_number(message, "importance_min"),
        "importance_max": optional_number(message, "importance_max"),
        "updated_from": optional_bound(message, "updated_from"),
        "updated_before": optional_bound(message, "updated_before"),
        "page_size": message.page_size,
        "page_token": message.page_token,
        "full": asks_full(message.view),
    }


def mask_paths(message: record_service_pb2.UpdateRecordRequest) -> tuple[str, ...] | None:
    """Read the paths of the facet mask where there is one."""
    if not message.HasField("facet_mask"):
        return None
    return tuple(message.facet_mask.paths[: MASK_PATHS_MAX + 1])


# -------------------- out


def asks_full(view: int) -> bool | Unknown:
    """Read a view: whether everything is asked for."""
    return FULL_VIEWS.get(view, UNKNOWN)


def optional_bound(message: Any, field: str) -> datetime | Unknown | None:
    """Read a bound of times, which may be absent."""
    return bound_of(getattr(message, field)) if message.HasField(field) else None


def optional_number(message: Any, field: str) -> float | None:
    """Read a number that may be absent."""
    return float(getattr(message, field)) if message.HasField(field) else None


def change_request(message: Any) -> ChangeRecord:
    """Read a request that changes a record and says no more."""
    return ChangeRecord(**change_fields(message))


def change_fields(message: Any) -> dict[str, Any]:
    """Read the fields that every change of a record has."""
    return {
        "scope": scope_input(message.scope),
        "idempotency_key": message.idempotency_key,
        "record_id": message.record_id,
        "expected_revision": message.expected_revision,
        "reason": message.reason,
    }


def record_message(project_id: str, record: Record, *, full: bool = True) -> record_pb2.Record:
    """Write a head."""
    head = record.current
    content = head.content
    message = record_pb2.Record(
        record_id=head.record_id,
        project_id=project_id,
        agent_id=head.agent_id,
        kind=KINDS.number(head.kind),
        type=content.type,
        title=content.title or "",
        content=content.content,
        rationale=content.rationale or "",
        importance=content.importance,
        tags=content.tags,
        state=STATES.number(head.state),
        trust=TRUSTS.number(head.trust),
        revision=head.revision,
        revision_id=head.revision_id,
        previous_revision_id=head.previous_revision_id or "",
        source_run_id=head.source_run_id or "",
        source_session_id=head.source_session_id or "",
        promoted_decision_id=head.promoted_decision_id or "",
        superseded_by_record_id=head.superseded_by_record_id or "",
    )
    put_time(message.create_time, record.create_time)
    put_time(message.update_time, head.create_time)
    if head.facet is not None:
        _put_facet(message.facet, head.facet, metadata=full)
    return message if full else _shortened(message)


def revision_message(revision: Revision, *, full: bool = True) -> record_pb2.Revision:
    """Write one revision."""
    content = revision.content
    message = record_pb2.Revision(
        record_id=revision.record_id,
        agent_id=revision.agent_id,
        revision=revision.revision,
        revision_id=revision.revision_id,
        previous_revision_id=revision.previous_revision_id or "",
        kind=KINDS.number(revision.kind),
        type=content.type,
        title=content.title or "",
        content=content.content,
        rationale=content.rationale or "",
        importance=content.importance,
        tags=content.tags,
        state=STATES.number(revision.state),
        trust=TRUSTS.number(revision.trust),
        source_run_id=revision.source_run_id or "",
        source_session_id=revision.source_session_id or "",
        promoted_decision_id=revision.promoted_decision_id or "",
        superseded_by_record_id=revision.superseded_by_record_id or "",
        reason=revision.reason or "",
        change_kind=CHANGE_KINDS.number(revision.change_kind),
        actor_fingerprint=revision.actor_fingerprint or "",
    )
    put_time(message.create_time, revision.create_time)
    if revision.facet is not None:
        _put_facet(message.facet, revision.facet, metadata=full)
    return message if full else _shortened(message)


def _shortened(message: _Message) -> _Message:
    """Leave a snippet in place of content and rationale; metadata were not written."""
    message.snippet = message.content[:SNIPPET_LENGTH]
    message.ClearField("content")
    message.ClearField("rationale")
    return message


def _put_facet(message: record_pb2.MemoryFacet, facet: MemoryFacet, *, metadata: bool) -> None:
    message.SetInParent()
    message.memory_kind = MEMORY_KINDS.number(facet.memory_kind)
    message.delivery_policy = DELIVERY_POLICIES.number(facet.delivery_policy)
    message.namespace = facet.namespace or ""
    message.subject = facet.subject or ""
    message.belief_type = BELIEF_TYPES.number(facet.belief_type)
    message.source = facet.source or ""
    message.source_type = SOURCE_TYPES.number(facet.source_type)
    message.origin_tier = ORIGIN_TIERS.number(facet.origin_tier)
    message.sensitivity = SENSITIVITIES.number(facet.sensitivity)
    message.epoch = facet.epoch or ""
    message.portability = PORTABILITIES.number(facet.portability)
    message.corroboration = facet.corroboration
    message.flagged = facet.flagged
    message.invalidation_reason = facet.invalidation_reason or ""
    if facet.confidence is not None:
        message.confidence = facet.confidence
    if metadata and facet.metadata is not None:
        put_struct(message.metadata, facet.metadata)
    if facet.expire_time is not None:
        put_time(message.expire_time, facet.expire_time)
    if facet.last_reinforce_time is not None:
        put_time(message.last_reinforce_time, facet.last_reinforce_time)
    if facet.invalidate_time is not None:
        put_time(message.invalidate_time, facet.invalidate_time)
