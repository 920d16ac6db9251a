"""What the driver and the server say, told apart by SQLSTATE and never by text (G-5)."""

import asyncpg

from providers.errors import (
    NegotiationRefusedError,
    OutcomeUnknownError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    StorageFullError,
    StoredDataInvalidError,
    WriteSetInvalidError,
)

CONFLICTS = frozenset({"40001", "40P01"})
"""Serialisation failure and deadlock: nothing was applied, the same may be tried again."""

DRIVER = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    OverflowError,
)
"""All that a driver may raise. ``TimeoutError`` is an ``OSError``; a stored time that Python has no
date for is an ``OverflowError``.
"""

UNIQUE_VIOLATION = "23505"
LOCK_NOT_AVAILABLE = "55P03"

_DISK_FULL = "53100"
_QUERY_CANCELED = "57014"
_PRIVILEGE = "42501"
_CONNECTION = "08"
# With these the server ends the session as well: it shuts down, crashed, or was told to.
_LAST_WORDS = frozenset({"FATAL", "PANIC"})
# Told by the SQLSTATE class: data the statement was given, or found, does not pass a check.
_DATA = frozenset({"22", "23"})
_SCHEMA = frozenset({"3F", "42"})
_CORRUPTED = frozenset({"XX001", "XX002"})


def ends_session(error: BaseException) -> bool:
    """Tell whether the connection is gone, so that a commit's answer can no longer come."""
    if not isinstance(error, asyncpg.PostgresError):
        return True
    return (error.sqlstate or "").startswith(_CONNECTION) or error.severity_en in _LAST_WORDS


def translate(error: Exception, *, in_doubt: bool = False, writing: bool = False) -> ProviderError:
    """Return what an error of the driver means to a caller.

    Args:
        error: One of ``DRIVER``.
        in_doubt: A commit was sent, and no answer to it has come.
        writing: The data in question is the caller's, not the store's.
    """
    if in_doubt and ends_session(error):
        return OutcomeUnknownError("no answer to a commit that was sent")
    if isinstance(error, asyncpg.PostgresError):
        return _of_state(error.sqlstate or "", writing=writing)
    if isinstance(error, OverflowError):
        return StoredDataInvalidError("the driver cannot read a stored time")
    if isinstance(error, TimeoutError):
        return ProviderTimeoutError("the time ran out")
    return ProviderUnavailableError("the database cannot be reached")


def _of_state(state: str, *, writing: bool) -> ProviderError:
    kind = state[:2]
    if state == _DISK_FULL:
        return StorageFullError("the database has no room left")
    if state == _QUERY_CANCELED:
        return ProviderTimeoutError("the database gave up on the statement")
    if state == _PRIVILEGE:
        return NegotiationRefusedError("the runtime role lacks a right", fact="rights")
    if kind in _SCHEMA:
        return NegotiationRefusedError("the schema is not the expected one", fact="schema")
    if kind in _DATA and writing:
        return WriteSetInvalidError(f"the database refused a value: {state}")
    if kind in _DATA or state in _CORRUPTED:
        return StoredDataInvalidError(f"the database cannot read what it holds: {state}")
    return ProviderUnavailableError(f"the database refused: {state}")
