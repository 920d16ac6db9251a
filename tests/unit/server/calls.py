"""A call without gRPC: what the layers need, and what they did with it."""

import asyncio
from typing import Any, Never

import grpc

from broker.domain.call import Caller
from broker.server.exchange import Exchange
from broker.server.methods import READ, MethodPolicy


class AbortedError(Exception):
    """Stands for the error gRPC raises after an abort."""


class FakeContext:
    """Keeps what a layer sends."""

    def __init__(self, *metadata: tuple[str, str | bytes], remaining: float | None = None) -> None:
        self.metadata = metadata
        self.remaining = remaining
        self.initial: Any = None
        self.trailing: Any = None
        self.aborted: tuple[grpc.StatusCode, str, dict[str, Any]] | None = None

    def invocation_metadata(self) -> Any:
        return self.metadata

    def time_remaining(self) -> float | None:
        return self.remaining

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self.trailing = trailing_metadata

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        self.initial = initial_metadata

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: Any) -> Never:
        self.aborted = code, details, dict(trailing_metadata)
        raise AbortedError


def exchange(context: FakeContext | None = None, policy: MethodPolicy = READ) -> Exchange:
    """Make the state of a call."""
    return Exchange("/a.B/C", policy, b"request", context or FakeContext())


def caller(subject: str = "s", tenant_claim: str | None = None) -> Caller:
    """Make a verified caller."""
    return Caller("https://issuer.test", subject, "Bearer x", tenant_claim=tenant_claim)


async def answer(_exchange: Exchange) -> bytes:
    """Serve a call at once."""
    return b"reply"


async def settle() -> None:
    """Let everything that can happen now happen."""
    for _ in range(5):
        await asyncio.sleep(0)
