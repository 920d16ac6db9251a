"""The request and result shapes of ``IMemoryProvider`` that move whole histories.

Clauses that govern them stand in ``interface.py``.
"""

from dataclasses import dataclass
from typing import Literal

from providers.model import ProjectKey, Record, Revision, Tombstone

EXPORT_IDS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Whole chains of one agent's memories and decisions (004-82).

    ``record_ids`` empty: all of them. Otherwise these, in any order, and what they link to: see
    clause X-3.

    Raises:
        ValueError: There are more than 1,000 ``record_ids``, or a limit is below 1.
    """

    project: ProjectKey
    agent_id: str
    record_ids: tuple[str, ...] = ()
    records_max: int = 25
    revisions_max: int = 500
    bytes_max: int = 1_048_576

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if len(self.record_ids) > EXPORT_IDS_MAX:
            raise ValueError(f"at most {EXPORT_IDS_MAX} record_ids")
        if min(self.records_max, self.revisions_max, self.bytes_max) < 1:
            raise ValueError("a limit is at least 1")


Limit = Literal["records", "revisions", "bytes"]


@dataclass(frozen=True, slots=True)
class Export:
    """Chains by kind, then record id; revisions oldest first.

    ``exceeded`` names the first limit that was passed, in the order of ``Limit``; there are no
    chains then.
    """

    chains: tuple[tuple[Record, tuple[Revision, ...]], ...]
    exceeded: Limit | None = None


# -------------------- tombstones

KEYS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyQuery:
    """Tombstones among keys: what an import asks after it read the transfer counter.

    Raises:
        ValueError: There are more than 1,000 ``keys``.
    """

    project: ProjectKey
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if len(self.keys) > KEYS_MAX:
            raise ValueError(f"at most {KEYS_MAX} keys")


@dataclass(frozen=True, slots=True)
class KeysFound:
    """The tombstones among the keys asked for, by key."""

    tombstones: tuple[Tombstone, ...]
