"""Remembers for a short time that a signature verified, and what the signed claims are."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.authority.claims import Claims

ENTRIES_MAX = 10_000
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Verified:
    """The claims of a token that verified under one generation of its issuer's keys."""

    claims: Claims
    generation: int
    until: float


class SignatureCache:
    """Verified tokens by their SHA-256, for at most 60 seconds and at most 10,000 of them.

    Holds neither tokens nor refusals. A hit saves the signature and nothing else: whoever takes it
    compares the generation and checks the claims again (times, audience) on every call.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        entries_max: int = ENTRIES_MAX,
        seconds: float = SECONDS,
    ) -> None:
        if not 0 < entries_max <= ENTRIES_MAX or not 0.0 < seconds <= SECONDS:
            raise ValueError("the signature cache keeps at most 10,000 entries for 60 seconds")
        self._monotonic = monotonic
        self._entries_max = entries_max
        self._seconds = seconds
        self._entries: dict[bytes, Verified] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, digest: bytes) -> Verified | None:
        """Return what verified within the last ``seconds``, or ``None``."""
        entry = self._entries.get(digest)
        if entry is not None and self._monotonic() >= entry.until:
            del self._entries[digest]
            return None
        return entry

    def keep(self, digest: bytes, claims: Claims, generation: int) -> None:
        """Remember a token that passed every check; the oldest entry makes room."""
        self._entries.pop(digest, None)
        if len(self._entries) >= self._entries_max:
            del self._entries[next(iter(self._entries))]
        self._entries[digest] = Verified(claims, generation, self._monotonic() + self._seconds)
