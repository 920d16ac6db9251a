"""What the driver and the server say, told apart by code and never by text (G-5)."""

import re
import ssl

from redis.exceptions import RedisError, ResponseError

from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    StorageFullError,
    StoredDataInvalidError,
)

DRIVER = (RedisError, OSError)
"""All that a driver may raise. ``TimeoutError`` is an ``OSError``."""

NO_SCRIPT = "NOSCRIPT"
UNCLEAR = "ERR"
"""What a right that a script lacks is called, among others."""

_WHOLE = frozenset({NO_SCRIPT, "OOM", "BUSY", "LOADING", "NOREPLICAS", "MISCONF", "READONLY"}) | {
    *("MASTERDOWN", "CROSSSLOT", "MOVED", "CLUSTERDOWN", "NOPERM", "NOAUTH", "WRONGTYPE"),
}
"""Codes that a script is refused with before it has written anything: WRONGTYPE only a read of ours
can meet, and what is written was looked at by then."""
_CODE = re.compile(r"[A-Z]+")
_MEMORY_FULL = "OOM"
_WRONG_TYPE = "WRONGTYPE"
_REFUSED = {
    "READONLY": ("the server is a replica", "replica"),
    "MASTERDOWN": ("the server is a replica", "replica"),
    "CROSSSLOT": ("the server is one of a cluster", "cluster"),
    "MOVED": ("the server is one of a cluster", "cluster"),
    "CLUSTERDOWN": ("the server is one of a cluster", "cluster"),
    "NOPERM": ("the user lacks a right", "rights"),
    "NOAUTH": ("the server asks for a user and a password", "rights"),
    "WRONGPASS": ("the server does not take user and password", "rights"),
    "MISCONF": ("the server takes no writes: it could not write to its disk", "aof"),
}


def code_of(error: BaseException) -> str:
    """Return the code that a server's error begins with, or an empty text."""
    if not isinstance(error, RedisError):
        return ""
    first = str(error).partition(" ")[0] if isinstance(error, ResponseError) else ""
    code = error.status_code or first
    return code if _CODE.fullmatch(code) else ""


def translate(error: Exception) -> ProviderError:
    """Return what an error of the driver means to a caller: nothing was written."""
    code = code_of(error)
    if code in _REFUSED:
        text, fact = _REFUSED[code]
        return NegotiationRefusedError(text, fact=fact)
    if code == _MEMORY_FULL:
        return StorageFullError("the server has no memory left")
    if code == _WRONG_TYPE:
        return StoredDataInvalidError("a stored key is of another type")
    if code:
        return ProviderUnavailableError(f"the server refused: {code}")
    if isinstance(error, TimeoutError):
        return ProviderTimeoutError("the time ran out")
    below = error.__context__
    if isinstance(below, ssl.SSLCertVerificationError):
        return ProviderUnavailableError(
            "the server's certificate is for another host, or not of an authority that is trusted"
        )
    if isinstance(below, ssl.SSLError):
        return ProviderUnavailableError("the server does not speak TLS as it must")
    return ProviderUnavailableError("the server cannot be reached")


def is_whole(answer: object) -> bool:
    """Tell whether a script that answers so has run to its end, or not begun to write."""
    return not isinstance(answer, Exception) or code_of(answer) in _WHOLE


def bare(error: Exception) -> Exception:
    """Return what to chain as the cause: of a server's error its code alone.

    Its text names the user, keys, or arguments.
    """
    code = code_of(error)
    return ResponseError(code) if code else error
