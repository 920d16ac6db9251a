"""One call at the edge: what the layers know about it and hand to each other."""

import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Never, Protocol

import grpc

from broker.domain.call import Call
from broker.domain.reasons import Reason
from broker.server.methods import MethodPolicy

REQUEST_ID_KEY: Final = "x-request-id"
EVENTS_KEY: Final = "x-events-authorization"
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_FOREIGN_CREDENTIALS: Final = frozenset(
    {
        "x-knowledge-authorization",
        "x-knowledge-authorization-bin",
    }
)

MetadataValue = str | bytes
CURRENT: Final[ContextVar[Call]] = ContextVar("broker_current_call")


def current_call() -> Call:
    """Return the call the running task serves. Its token was verified.

    Raises:
        LookupError: outside of a call; a bug.
    """
    return CURRENT.get()


@dataclass(slots=True)
class Headers:
    """The metadata the edge looks at, every occurrence of it, in order.

    Binary twins (``-bin``) are gathered with their text twins, as bytes, so that whoever judges
    them sees them.
    """

    authorization: list[MetadataValue] = field(default_factory=list)
    tenant: list[MetadataValue] = field(default_factory=list)
    request_ids: list[MetadataValue] = field(default_factory=list)
    events: list[MetadataValue] = field(default_factory=list)
    foreign_credential: str | None = None

    @classmethod
    def read(cls, metadata: Any) -> "Headers":
        """Pick what matters out of a call's metadata."""
        headers = cls()
        for key, value in metadata or ():
            if key in {"authorization", "authorization-bin"}:
                headers.authorization.append(value)
            elif key in {"x-tenant", "x-tenant-bin"}:
                headers.tenant.append(value)
            elif key in {EVENTS_KEY, f"{EVENTS_KEY}-bin"}:
                headers.events.append(value)
            elif key == REQUEST_ID_KEY:
                headers.request_ids.append(value)
            elif key in _FOREIGN_CREDENTIALS:
                headers.foreign_credential = key.removesuffix("-bin")
        return headers

    def request_id(self) -> str | None:
        """Return the caller's request id where there is exactly one and it is well formed."""
        match self.request_ids:
            case [str(given)] if _REQUEST_ID.fullmatch(given):
                return given
            case _:
                return None


class CallContext(Protocol):
    """What the layers need of gRPC's context of a call."""

    def invocation_metadata(self) -> Any:
        """Return key and value of everything the caller sent."""
        ...

    def time_remaining(self) -> float | None:
        """Return the seconds until the caller's deadline, or ``None`` where it set none."""
        ...

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Have metadata sent after the reply."""
        ...

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Send metadata ahead of the reply."""
        ...

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: Any) -> Never:
        """End the call with an error."""
        ...


@dataclass(slots=True)
class Exchange:
    """The state of one call. Layers fill it in from the outside to the inside.

    ``started`` is a time of the performance counter, ``deadline`` one of the event loop, both in
    seconds. ``code`` and ``reason`` are what the caller gets; ``fault`` describes an error for
    operators.
    """

    method: str
    policy: MethodPolicy
    request: bytes
    context: CallContext
    headers: Headers = field(default_factory=Headers)
    request_id: str = ""
    started: float = 0.0
    deadline: float | None = None
    call: Call | None = None
    replayed: bool | None = None
    code: grpc.StatusCode = grpc.StatusCode.OK
    reason: Reason | None = None
    fault: dict[str, str] = field(default_factory=dict)

    @property
    def commit_sent(self) -> bool:
        """Whether a write may have happened."""
        return self.call is not None and self.call.commit_sent


Step = Callable[[Exchange], Awaitable[bytes]]
"""Serves a call and returns the reply's bytes."""

Layer = Callable[[Step, Exchange], Awaitable[bytes]]
"""Does its part around the next step."""
