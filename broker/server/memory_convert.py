"""What MemoryService reads and writes: see ``convert`` for the rules that hold here too."""

from collections.abc import Iterable
from itertools import islice

from broker.api.v1 import memory_service_pb2 as pb
from broker.domain.fields import FILTER_MAX, TAGS_GIVEN_MAX
from broker.domain.memories import (
    MEMORIES_MAX,
    ArmReport,
    DedupInput,
    FilterInput,
    MemoryInput,
    Recollection,
    Remembered,
)
from broker.domain.requests import ContentInput
from broker.server.convert import facet_input, record_message
from broker.server.vocabulary import (
    ARM_GAPS,
    DEDUP_MODES,
    DEDUP_SIGNALS,
    MEMORY_KINDS,
    ORIGIN_TIERS,
    RECALL_ARMS,
    REMEMBER_ACTIONS,
    SENSITIVITIES,
)
from broker.server.wellknown import put_time
from providers.model import OriginTier, Record

# -------------------- in


def memory_inputs(messages: Iterable[pb.MemoryInput]) -> tuple[MemoryInput, ...]:
    """Read memories; of too many so many that it is seen."""
    return tuple(
        MemoryInput(
            content=_content(each),
            facet=facet_input(each),
            expire_days=each.expire_days,
        )
        for each in islice(messages, MEMORIES_MAX + 1)
    )


def _content(message: pb.MemoryInput) -> ContentInput:
    return ContentInput(
        type=message.type,
        title=message.title,
        content=message.content,
        rationale="",
        importance=message.importance if message.HasField("importance") else None,
        tags=tuple(message.tags[: TAGS_GIVEN_MAX + 1]),
    )


def dedup_input(message: pb.DedupOptions) -> DedupInput:
    """Read how duplicates are looked for; an absent message reads as the defaults."""
    given = message.HasField("duplicate_threshold")
    return DedupInput(
        mode=DEDUP_MODES.word(message.mode),
        duplicate_threshold=message.duplicate_threshold if given else None,
    )


def filter_input(message: pb.RecallFilter) -> FilterInput:
    """Read a filter; an absent one filters nothing."""
    enough = FILTER_MAX + 1
    return FilterInput(
        namespaces=tuple(message.namespaces[:enough]),
        memory_kinds=tuple(map(MEMORY_KINDS.word, message.memory_kinds[:enough])),
        tags_all=tuple(message.tags_all[:enough]),
        tags_any_glob=tuple(message.tags_any_glob[:enough]),
        subject=message.subject,
        epoch=message.epoch,
        importance_min=message.importance_min if message.HasField("importance_min") else None,
        sensitivity_ceiling=SENSITIVITIES.word(message.sensitivity_ceiling),
        min_origin_tier=ORIGIN_TIERS.word(message.min_origin_tier),
    )


# -------------------- out


def arm_message(report: ArmReport) -> pb.ArmReport:
    """Write how an arm did."""
    return pb.ArmReport(
        arm=RECALL_ARMS.number(report.arm),
        ran=report.ran,
        gap=ARM_GAPS.number(report.gap),
        found=report.found,
    )


def remembered_message(project_id: str, remembered: Remembered) -> pb.Remembered:
    """Write what became of one memory."""
    message = pb.Remembered(
        record=record_message(project_id, remembered.record),
        action=REMEMBER_ACTIONS.number(remembered.action),
        reinforced=remembered.reinforced,
        signal=DEDUP_SIGNALS.number(remembered.signal),
        superseded_record_id=remembered.superseded_record_id or "",
    )
    if remembered.score is not None:
        message.score = remembered.score
    return message


def recollection_message(project_id: str, found: Recollection, *, full: bool) -> pb.Recollection:
    """Write one memory that was found."""
    message = pb.Recollection(
        record=record_message(project_id, found.record, full=full),
        score=found.score,
        keyword_rank=found.keyword_rank or 0,
        vector_rank=found.vector_rank or 0,
        trust_label=trust_label(found.record),
    )
    put_time(message.store_time, found.record.create_time)
    if found.similarity is not None:
        message.similarity = found.similarity
    return message


def trust_label(record: Record) -> str:
    """Say who stands behind a memory: its origin's tier, then its trust (000-31)."""
    facet = record.current.facet
    tier = (None if facet is None else facet.origin_tier) or OriginTier.EXTERNAL
    return f"{tier.value}, {record.current.trust.value}"
