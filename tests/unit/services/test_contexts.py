"""Heavy contexts over a scripted authority: off the event loop, one at a time (004-13, 004-89)."""

import asyncio
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.context.compiler import compile_context
from broker.context.limits import ContextLimits
from broker.domain.context import CompileContext, Compiled
from broker.services import contexts
from broker.services.contexts import Contexts
from providers.requests import Candidates
from tests.unit.services.world import SCOPE, World

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """Stands still."""

    def now(self) -> datetime:
        """Return the same time."""
        return NOW


async def no_candidates(*_: object, **__: object) -> Candidates:
    """Give none, which the in-memory model, that has no COMPOSE, refuses to look for."""
    return Candidates(records=(), truncated_bytes=False)


@pytest.mark.parametrize("heavy", [True, False])
async def test_heavy_ones_take_turns(monkeypatch: pytest.MonkeyPatch, *, heavy: bool) -> None:
    """Eight at once: one thread at most, and light ones take none."""
    threads: list[int] = []
    inside: set[int] = set()
    most = 0

    def watched(*given: Any, **named: Any) -> Compiled:
        nonlocal most
        own = threading.get_ident()
        threads.append(own)
        inside.add(own)
        most = max(most, len(inside))
        time.sleep(0.01)  # long enough for another thread to come in
        inside.discard(own)
        return compile_context(*given, **named)

    monkeypatch.setattr(contexts, "compile_context", watched)
    monkeypatch.setattr(contexts, "is_heavy", lambda records: heavy)
    world = World()
    monkeypatch.setattr(type(world.provider), "candidates", no_candidates)
    log: Any = None  # a dry run logs nothing
    served = Contexts(world.path, log, ContextLimits(), clock=Clock(), new_id=str)
    request = CompileContext(scope=SCOPE, dry_run=True)
    replies = await asyncio.gather(*(served.compile(world.call(), request) for _ in range(8)))
    assert [reply.compiled.text for reply in replies] == [None] * 8
    assert len(threads) == 8 and most == 1
    assert (threading.get_ident() in threads) is not heavy
