"""Faults that a test scripts, and the process of the stand-in plays."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

ANY = "any"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to requests of one kind; several faults of a kind come one after the other.

    Attributes:
        kind: The kind of request, as ``Control.counts`` names it, or ``any``.
        after: How many requests of the kind pass untouched before it.
        times: How many requests it meets.
        applied: Whether a request takes effect although its reply is replaced or lost.
        status: The status to answer with; 0 leaves the reply as it is.
        substatus: The substatus that goes with the status.
        retry_after_ms: The header of that name, in milliseconds; 0 sends none.
        drop: Close the connection instead of answering.
        inner: Answer a batch with 207 and this status for one operation, 424 for the others.
        index: The operation that ``inner`` strikes, from 0.
        results: Return only so many results of a batch that was applied; -1 returns all.
        items: Return at most so many items a page of a query, also none; -1 as asked for.
        delay_ms: Milliseconds to wait before the request takes effect, which it does also when
            the client has gone meanwhile.
        late_ms: Milliseconds to wait afterwards, before the reply.
    """

    kind: str = ANY
    after: int = 0
    times: int = 1
    applied: bool = False
    status: int = 0
    substatus: int = 0
    retry_after_ms: int = 0
    drop: bool = False
    inner: int = 0
    index: int = 0
    results: int = -1
    items: int = -1
    delay_ms: int = 0
    late_ms: int = 0

    @classmethod
    def throttled(cls, kind: str, *, retry_after_ms: int = 20, times: int = 1) -> Self:
        """429/3200: the request rate is too large; nothing was done."""
        return cls(
            kind=kind, status=429, substatus=3200, retry_after_ms=retry_after_ms, times=times
        )

    @classmethod
    def refused(cls, kind: str, status: int, substatus: int = 0, *, times: int = 1) -> Self:
        """Any status; nothing was done: 413, 449, 503, 410/1002, 403/1014, 408."""
        return cls(kind=kind, status=status, substatus=substatus, times=times)

    @classmethod
    def timed_out(cls, kind: str, *, applied: bool, times: int = 1) -> Self:
        """408: the client cannot know whether it was done."""
        return cls(kind=kind, status=408, applied=applied, times=times)

    @classmethod
    def dropped(cls, kind: str, *, applied: bool, times: int = 1) -> Self:
        """The connection ends without a reply, before or after the request was done."""
        return cls(kind=kind, drop=True, applied=applied, times=times)

    @property
    def prevents(self) -> bool:
        """Whether the request has no effect."""
        return not self.applied and bool(self.status or self.drop or self.inner)

    def written(self) -> dict[str, Any]:
        """The fault as it goes over the control channel."""
        return asdict(self)
