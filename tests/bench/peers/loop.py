"""Leads a peer in a process of its own: reads an order a line, as JSON, and answers each.

Orders are ``start`` with what the peer is given, and ``run`` with the name of an operation, how
many calls and how many at once. An answer holds what was measured, or ``error``.

What this module imports is in every environment that a peer has.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import uvloop

from tests.bench.cases import timed

THREADS = 32
"""How many threads a peer may have that gives its work to threads: enough for all calls."""

Operation = Callable[[int], Awaitable[object]]
"""Makes the call of a number. Numbers count on from one run to the next."""


class Peer(Protocol):
    """A library under measurement."""

    async def start(self, given: Mapping[str, Any]) -> Mapping[str, Operation]:
        """Open it, and put in what is read; return its operations by name."""
        ...

    async def stop(self) -> None:
        """Close it."""
        ...


class PeerFailedError(Exception):
    """A peer did not do what it was asked for."""


def lead(peer: Peer) -> None:
    """Carry out the orders on standard input until it ends.

    Standard output is for answers alone: what a library prints goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    uvloop.run(_serve(peer, answers.write, answers.flush))


async def _serve(peer: Peer, write: Callable[[str], object], flush: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    reader, leader = ThreadPoolExecutor(1), _Leader(peer)
    while line := await loop.run_in_executor(reader, sys.stdin.readline):
        answer = await leader.answer(json.loads(line))
        write(json.dumps(answer) + "\n")
        flush()
    await peer.stop()


class _Leader:
    """Carries out orders; remembers how far each operation has counted."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._operations: Mapping[str, Operation] = {}
        self._counted: dict[str, int] = {}

    async def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out one order."""
        try:
            return await self._done(order)
        except Exception as error:  # noqa: BLE001 - told to the one who asked
            first = error
            while isinstance(first, ExceptionGroup):
                first = first.exceptions[0]
            return {"error": f"{type(first).__name__}: {first}"}

    async def _done(self, order: dict[str, Any]) -> dict[str, Any]:
        if order["do"] == "run":
            return await self._run(order["operation"], order["calls"], order["concurrency"])
        self._operations = await self._peer.start(order["given"])
        return {}

    async def _run(self, name: str, calls: int, concurrency: int) -> dict[str, Any]:
        operation = self._operations[name]
        first = self._counted.get(name, 0)
        self._counted[name] = first + calls
        sample = await timed(
            calls, concurrency, lambda number: operation(first + number), [os.getpid()]
        )
        return {
            "seconds": sample.seconds,
            "latencies": sample.latencies,
            "cpu_s": sample.cpu_s,
        }
