"""What was asked: numbers by kind, and the heads of the latest requests."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from broker.devstack.cosmos.standin import batch
from broker.devstack.cosmos.standin.calls import Call
from broker.devstack.cosmos.standin.refusals import RefusalError

HEADS_KEPT = 500
_SECRET = {"authorization", "cookie"}


class Ledger:
    """Requests since the start, or since the latest ``forget()``."""

    def __init__(self) -> None:
        """Begins empty."""
        self._counts: Counter[str] = Counter()
        self._heads: deque[dict[str, Any]] = deque(maxlen=HEADS_KEPT)

    def enter(self, call: Call, kind: str, path: str) -> dict[str, Any]:
        """Notes a request that has arrived; its status is filled in when it is answered."""
        head: dict[str, Any] = {
            "kind": kind,
            "method": call.method,
            "path": path,
            "bytes": len(call.body),
            "headers": {name: it for name, it in call.headers.items() if name not in _SECRET},
            "status": 0,
        }
        if kind == "batch":
            try:
                head["operations"] = batch.count(call)
            except RefusalError:
                head["operations"] = 0
        self._counts[kind] += 1
        self._heads.append(head)
        return head

    def counts(self) -> dict[str, int]:
        """Returns the number of requests by kind."""
        return dict(self._counts)

    def heads(self) -> list[dict[str, Any]]:
        """Returns the latest requests, oldest first. A status of 0 stands for no answer yet."""
        return [*self._heads]

    def forget(self) -> None:
        """Begins anew."""
        self._counts.clear()
        self._heads.clear()
