"""What an adapter's harness says about the adapter, its store, and what can be done to both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from providers.capabilities import Capability

Named = TypeVar("Named", bound=StrEnum)

FLOOR = frozenset({Capability.READ, Capability.WRITE})
"""Without these there is nothing to judge: every law reads or writes."""


class StoreFact(StrEnum):
    """Something true of the store that the harness can put to use. An absent one is a gap."""

    DURABLE = "durable"
    """Acknowledged writes survive ``Bench.restart``."""
    FREEZABLE = "freezable"
    """``Bench.freeze`` stops the store without closing a connection, ``thaw`` lets it go on."""
    LOSES_REPLIES = "loses_replies"
    """``Bench.lose_replies`` lets requests through and drops what comes back."""
    COUNTED = "counted"
    """``Bench.round_trips`` counts the requests of the bench's provider."""
    CORRUPTIBLE = "corruptible"
    """``Bench.corrupt`` damages one stored record behind the adapter's back."""
    SKEWABLE = "skewable"
    """``Bench.skew`` changes the time of the provider's process and not the store's."""


class Hazard(StrEnum):
    """A way in which a resource of this sort can be unfit. Not having one is no gap.

    The value is also what ``NegotiationRefusedError.fact`` must say.
    """

    MARKER = "marker"
    IDENTITY = "identity"
    GENERATION = "generation"
    SCHEMA = "schema"
    NAME = "name"
    RIGHTS = "rights"
    PARTITION_KEY = "partition_key"
    TTL = "ttl"
    INDEX = "index"
    EVICTION = "eviction"
    AOF = "aof"
    REPLICA = "replica"
    CLUSTER = "cluster"
    EXPIRING_KEY = "expiring_key"


MARKER_HAZARDS = frozenset({Hazard.MARKER, Hazard.IDENTITY, Hazard.GENERATION})
"""These make the live resource another than the configured one (clauses N-2 and G-3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much one commit may hold, whatever it is: at most what clause C-15 says.

    Attributes:
        heads: Heads with a receipt, and nothing else.
        history: Revisions below one head.
        keys: Claims, releases, absences and tombstones together, with one head.
        text_bytes: UTF-8 of the content of all, where there is history.
        record_bytes: UTF-8 of the content of one.
    """

    heads: int = 100
    history: int = 500
    keys: int = 100
    text_bytes: int = 4 * 1024 * 1024
    record_bytes: int = 3_355_444


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One backend: what it can do, and a reason for everything it cannot.

    ``trips`` gives how many round trips the calls take at most that take more than one, by the
    method's name; all that deliver are ``deliver``. ``recall_records_max`` is what the benches'
    providers negotiate: 200 or more, and best not many more, since a law fills it.

    Raises:
        ValueError: a capability or fact is neither declared nor explained, or both, or READ and
            WRITE are not declared. Not retryable.
    """

    backend: str
    capabilities: frozenset[Capability]
    absent_capabilities: Mapping[Capability, str]
    facts: frozenset[StoreFact] = frozenset()
    absent_facts: Mapping[StoreFact, str]
    hazards: frozenset[Hazard] = field(default=MARKER_HAZARDS)
    sizes: Sizes = field(default=Sizes())
    trips: Mapping[str, int] = field(default_factory=dict)
    recall_records_max: int | None = None

    def __post_init__(self) -> None:
        if not self.capabilities >= FLOOR:
            raise ValueError(f"{self.backend}: a provider at least reads and writes")
        _explained(self.backend, set(Capability), self.capabilities, self.absent_capabilities)
        _explained(self.backend, set(StoreFact), self.facts, self.absent_facts)


def _explained(
    backend: str, whole: set[Named], declared: frozenset[Named], absent: Mapping[Named, str]
) -> None:
    mute = [name for name, reason in absent.items() if not reason.strip()]
    wrong = (whole - declared) ^ set(absent)
    if wrong or mute:
        raise ValueError(f"{backend}: declare or explain, not both: {sorted({*wrong, *mute})}")
