"""The channel by which a test scripts the stand-in: lines of JSON on a Unix socket.

Its directory is open to the launcher's account alone. No client of the service gets here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from broker.devstack.cosmos.faults import Fault
from broker.devstack.cosmos.standin.account import Account
from broker.devstack.cosmos.standin.clock import Clock
from broker.devstack.cosmos.standin.ledger import Ledger
from broker.devstack.cosmos.standin.script import Script
from broker.devstack.cosmos.standin.traffic import Traffic
from broker.devstack.processes.errors import ServerError


class Controls:
    """Carries orders out."""

    def __init__(
        self,
        account: Account,
        clock: Clock,
        script: Script,
        ledger: Ledger,
        traffic: Traffic,
    ) -> None:
        """Takes orders for these."""
        self._account = account
        self._clock = clock
        self._script = script
        self._ledger = ledger
        self._traffic = traffic
        self._orders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "inject": self._inject,
            "clear": lambda _: self._script.clear(),
            "skew": self._skew,
            "account": self._account.change,
            "counts": lambda _: self._ledger.counts(),
            "heads": lambda _: self._ledger.heads(),
            "forget": lambda _: self._ledger.forget(),
            "hold": self._hold,
            "release": lambda _: self._traffic.release(),
            "traffic": lambda _: self._traffic.counts(),
            "disconnect": lambda _: self._traffic.disconnect(),
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries out the one order of a connection."""
        line = await reader.readline()
        if line:
            writer.write(json.dumps(self._carry_out(line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    def _carry_out(self, line: bytes) -> dict[str, Any]:
        try:
            order = json.loads(line)
            return {"result": self._orders[order["do"]](order["with"])}
        except ServerError as error:
            return {"error": str(error)}
        except (ValueError, KeyError, TypeError):
            return {"error": "the order is not one that is known"}

    def _inject(self, given: dict[str, Any]) -> None:
        self._script.add(Fault(**given))

    def _hold(self, given: dict[str, Any]) -> None:
        self._traffic.hold(given["kind"])

    def _skew(self, given: dict[str, Any]) -> None:
        self._clock.skew = given["seconds"]
