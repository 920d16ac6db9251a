"""A test's hand on the stand-in: faults, clock, account, and what was asked of it."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from broker.devstack.cosmos.faults import Fault
from broker.devstack.processes.errors import ServerError

TIMEOUT = 10.0


class Control:
    """Gives orders to a running stand-in; each is carried out when its method returns.

    Faults, counts and the clock are forgotten when the stand-in ends; the account stays changed.

    Attributes:
        socket: The Unix socket that takes them.
    """

    def __init__(self, path: Path) -> None:
        """Names the socket; nothing happens yet."""
        self.socket = path

    def is_served(self) -> bool:
        """Tells whether orders are taken, which is when requests are."""
        with suppress(ServerError):
            self.counts()
            return True
        return False

    def inject(self, *faults: Fault) -> None:
        """Lets faults strike the next requests of their kinds."""
        for fault in faults:
            self._order("inject", fault.written())

    def clear(self) -> None:
        """Drops the faults that have not struck yet."""
        self._order("clear", {})

    def skew(self, seconds: float) -> None:
        """Puts the server's clock ahead: ``_ts``, expiry and GetCurrentTimestamp().

        The date of a signature is still compared with the true time.
        """
        self._order("skew", {"seconds": seconds})

    def change_account(
        self,
        *,
        consistency: str | None = None,
        readable: list[str] | None = None,
        writable: list[str] | None = None,
        multiple_writes: bool | None = None,
        bearer: str | None = None,
    ) -> None:
        """Makes the account tell something else; what is None stays.

        Args:
            consistency: The default level, such as ``Session``.
            readable: Names of the regions to read from.
            writable: Names of the regions to write to.
            multiple_writes: Whether several regions take writes.
            bearer: A token accepted as that of a known identity; empty for none.

        Raises:
            ServerError: There is no such level.
        """
        given = {
            "consistency": consistency,
            "readable": readable,
            "writable": writable,
            "multiple_writes": multiple_writes,
            "bearer": bearer,
        }
        self._order("account", {name: value for name, value in given.items() if value is not None})

    def counts(self) -> dict[str, int]:
        """Returns how many requests of each kind have arrived, refused ones too.

        Kinds are ``account``, ``ranges``, ``create``, ``read``, ``replace``, ``delete``,
        ``upsert``, ``query``, ``batch`` for items, the verbs and ``list`` with ``database`` or
        ``container`` after them, as in ``read container``, and ``other``.
        """
        counts: dict[str, int] = self._order("counts", {})
        return counts

    def heads(self) -> list[dict[str, Any]]:
        """Returns the latest requests, oldest first, at most 500.

        Each has ``kind``, ``method``, ``path``, ``bytes``, ``headers`` by lower-case name (never
        what authorises), ``status`` (0 where none was sent), and a batch ``operations``.
        """
        heads: list[dict[str, Any]] = self._order("heads", {})
        return heads

    def forget(self) -> None:
        """Begins counting anew."""
        self._order("forget", {})

    def hold(self, kind: str) -> None:
        """Lets requests of one kind wait before they take effect, until ``release()``.

        They take effect then also where the client has gone meanwhile. One kind at a time.
        """
        self._order("hold", {"kind": kind})

    def release(self) -> None:
        """Lets the requests that are held go on, and holds none any more."""
        self._order("release", {})

    def traffic(self) -> dict[str, int]:
        """Returns numbers of what is there now.

        ``connections`` that are open, requests that are ``running`` (not answered yet), and how
        many of these are ``held``.
        """
        traffic: dict[str, int] = self._order("traffic", {})
        return traffic

    def disconnect(self) -> None:
        """Resets all connections of clients; what they asked for is done all the same."""
        self._order("disconnect", {})

    def _order(self, order: str, given: dict[str, Any]) -> Any:
        line = json.dumps({"do": order, "with": given}).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(TIMEOUT)
                connection.connect(str(self.socket))
                connection.sendall(line)
                with connection.makefile("rb") as answers:
                    answer = json.loads(answers.readline())
        except (OSError, ValueError) as error:
            raise ServerError(f"the stand-in does not answer an order: {error}") from error
        if "error" in answer:
            raise ServerError(answer["error"])
        return answer["result"]
