"""Enum numbers of the wire and the vocabulary of the domain, both ways.

Pairs are made by name, so a value added on both sides needs no code here.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from broker.api.v1 import context_service_pb2, effect_pb2, memory_service_pb2, record_pb2
from broker.domain.authority import GrantedOn
from broker.domain.context import ContextKind, OmissionCause
from broker.domain.context_log import Verdict
from broker.domain.memories import Action, Arm, DedupMode, Gap, RecallMode, Signal
from broker.domain.requests import UNKNOWN, RejectKind, Unknown
from providers.model import (
    BeliefType,
    ChangeKind,
    DeliveryPolicy,
    Kind,
    MemoryKind,
    OriginTier,
    Portability,
    Sensitivity,
    SourceType,
    State,
    Trust,
)

_Word = TypeVar("_Word", bound=StrEnum)


class Numbers(Generic[_Word]):
    """One enum of the wire beside one of the vocabulary. 0 stands for nothing, as ``None``."""

    def __init__(self, wire: Any, prefix: str, words: Iterable[_Word]) -> None:
        """Pair every word with the wire's value of the same name behind ``prefix``.

        Raises:
            ValueError: the wire has no such value.
        """
        self._numbers: Mapping[_Word | None, int] = {
            None: 0,
            **{word: wire.Value(prefix + word.name) for word in words},
        }
        self._words: Mapping[int, _Word | None] = {
            number: word for word, number in self._numbers.items()
        }

    def number(self, word: _Word | None) -> Any:
        """Return the number of a word, as whatever type generated code wants."""
        return self._numbers[word]

    def word(self, number: int) -> _Word | Unknown | None:
        """Return the word of a number, ``None`` for 0, ``UNKNOWN`` for what has no meaning here."""
        return self._words.get(number, UNKNOWN)


FULL_VIEWS: Final[Mapping[int, bool]] = {
    record_pb2.RECORD_VIEW_UNSPECIFIED: False,
    record_pb2.RECORD_VIEW_BASIC: False,
    record_pb2.RECORD_VIEW_FULL: True,
}
"""Whether a view asks for everything."""

KINDS: Final = Numbers(record_pb2.RecordKind, "RECORD_KIND_", Kind)
STATES: Final = Numbers(record_pb2.RecordState, "RECORD_STATE_", State)
TRUSTS: Final = Numbers(record_pb2.Trust, "TRUST_", Trust)
CHANGE_KINDS: Final = Numbers(record_pb2.ChangeKind, "CHANGE_KIND_", ChangeKind)
MEMORY_KINDS: Final = Numbers(record_pb2.MemoryKind, "MEMORY_KIND_", MemoryKind)
DELIVERY_POLICIES: Final = Numbers(record_pb2.DeliveryPolicy, "DELIVERY_POLICY_", DeliveryPolicy)
BELIEF_TYPES: Final = Numbers(record_pb2.BeliefType, "BELIEF_TYPE_", BeliefType)
SOURCE_TYPES: Final = Numbers(record_pb2.SourceType, "SOURCE_TYPE_", SourceType)
ORIGIN_TIERS: Final = Numbers(record_pb2.OriginTier, "ORIGIN_TIER_", OriginTier)
SENSITIVITIES: Final = Numbers(record_pb2.Sensitivity, "SENSITIVITY_", Sensitivity)
REJECT_KINDS: Final = Numbers(record_pb2.RejectKind, "REJECT_KIND_", RejectKind)
PORTABILITIES: Final = Numbers(record_pb2.Portability, "PORTABILITY_", Portability)
CONTEXT_KINDS: Final = Numbers(
    context_service_pb2.ContextItemKind, "CONTEXT_ITEM_KIND_", ContextKind
)
OMISSION_CAUSES: Final = Numbers(
    context_service_pb2.OmissionCause, "OMISSION_CAUSE_", OmissionCause
)
VERDICTS: Final = Numbers(context_service_pb2.Verdict, "VERDICT_", Verdict)
GRANTED_ON: Final = Numbers(
    effect_pb2.AuthorizationResourceType, "AUTHORIZATION_RESOURCE_TYPE_", GrantedOn
)
REMEMBER_ACTIONS: Final = Numbers(memory_service_pb2.RememberAction, "REMEMBER_ACTION_", Action)
DEDUP_MODES: Final = Numbers(memory_service_pb2.DedupMode, "DEDUP_MODE_", DedupMode)
DEDUP_SIGNALS: Final = Numbers(memory_service_pb2.DedupSignal, "DEDUP_SIGNAL_", Signal)
RECALL_ARMS: Final = Numbers(memory_service_pb2.RecallArm, "RECALL_ARM_", Arm)
RECALL_MODES: Final = Numbers(memory_service_pb2.RecallMode, "RECALL_MODE_", RecallMode)
ARM_GAPS: Final = Numbers(memory_service_pb2.ArmGap, "ARM_GAP_", Gap)
