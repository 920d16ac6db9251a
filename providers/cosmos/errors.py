"""What the SDK and the service say, told apart by status and never by text (G-5)."""

import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from aiohttp import ClientConnectorCertificateError, ClientConnectorError
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos.exceptions import CosmosHttpResponseError

from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderThrottledError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    ResourceMismatchError,
    StorageFullError,
    WriteSetTooLargeError,
)

RETRY_AFTER = "x-ms-retry-after-ms"
SUBSTATUS = "x-ms-substatus"
RETRY_MS = 1_000
"""Where the service names no delay."""
_RETRY_MS_MAX = 24 * 60 * 60 * 1_000

DONE = frozenset({200, 201, 204})
"""What an operation of a batch is answered that was done."""
MOVED = frozenset({404, 409, 412})
"""An operation of a batch met something else than was read."""
_AWAY = frozenset({(403, 3), (403, 1008)})
"""The region does not take writes now, or is being left."""
_PARTITION_FULL = (403, 1014)
_CONTAINER_CHANGED = (400, 1024)
_ABSENT = frozenset({0, 1003})
_RIGHTS = frozenset({401, 403})


class SentAgainError(Exception):
    """The SDK was about to send a request again, after this status."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        """Keep what the request was answered; 0: nothing."""
        super().__init__(f"a request would be sent again after {status}")
        self.status = status
        self.headers = headers


class RecreatedError(Exception):
    """The container is another one than that which was opened."""


class UnsoundAnswerError(Exception):
    """An answer is none that the service gives: a proxy's page, or cut, or empty."""


DRIVER = (AzureError, SentAgainError, RecreatedError, UnsoundAnswerError, OSError)
"""All that the SDK and its transport may raise. ``TimeoutError`` is an ``OSError``."""
_STUMBLES = (LookupError, TypeError, ValueError, AttributeError, RecursionError, zlib.error)


@contextmanager
def sound() -> Iterator[None]:
    """Hold the SDK's own work: what it stumbles over in an answer makes that answer unsound.

    It looks at no answer before it takes it apart. What it says then would hold pieces of the
    answer, so it is not chained.

    Raises:
        UnsoundAnswerError: The SDK raised something that is no error of its own.
    """
    try:
        yield
    except DRIVER:
        raise
    except _STUMBLES:
        raise UnsoundAnswerError("an answer is none of the service's") from None


def status_of(error: Exception) -> int:
    """Return the status that a request was answered, or 0 where it was not."""
    if isinstance(error, SentAgainError):
        return error.status
    return int(error.status_code or 0) if isinstance(error, CosmosHttpResponseError) else 0


def is_unknown(status: int) -> bool:
    """Tell whether a write may have happened that was answered so; 0: it was not answered."""
    return status in {0, HTTPStatus.REQUEST_TIMEOUT} or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def is_unsent(error: BaseException) -> bool:
    """Tell whether the request of this error never left: no connection could be opened."""
    cause = getattr(error, "inner_exception", None) or error.__cause__
    return isinstance(error, RecreatedError) or isinstance(cause, ClientConnectorError)


def is_in_doubt(error: Exception) -> bool:
    """Tell whether a batch may have been applied that failed in this way."""
    return is_unknown(status_of(error)) and not is_unsent(error)


def translate(error: Exception) -> ProviderError:
    """Return what an error means to a caller: nothing was written."""
    if isinstance(error, RecreatedError):
        return ResourceMismatchError("the container is another one than before")
    if isinstance(error, UnsoundAnswerError):
        return ProviderUnavailableError(str(error))
    if isinstance(error, TimeoutError):
        return ProviderTimeoutError("the time ran out")
    if isinstance(error, ClientAuthenticationError):
        return NegotiationRefusedError("there is no identity to use", fact="rights")
    if _is_distrusted(error):
        return ProviderUnavailableError(
            "the account's certificate is for another host, or not of an authority that is trusted"
        )
    status = status_of(error)
    headers = getattr(error, "headers", None) or {}
    substatus = getattr(error, "sub_status", None) or headers.get(SUBSTATUS) or 0
    return translate_status(status, int(substatus), headers)


def _is_distrusted(error: BaseException) -> bool:
    cause = getattr(error, "inner_exception", None) or error.__cause__
    return isinstance(cause, ClientConnectorCertificateError)


def translate_status(status: int, substatus: int, headers: Mapping[str, str]) -> ProviderError:
    """Return what a status means to a caller: nothing was written."""
    if status == 0:
        return ProviderUnavailableError("the account cannot be reached")
    if (status, substatus) == _CONTAINER_CHANGED:
        return ResourceMismatchError("the container is another one than before")
    if (status, substatus) == _PARTITION_FULL:
        return StorageFullError("the partition has no room left")
    if status in _RIGHTS and (status, substatus) not in _AWAY:
        return NegotiationRefusedError("the account refuses the key or identity", fact="rights")
    if status == HTTPStatus.NOT_FOUND and substatus in _ABSENT:
        return NegotiationRefusedError("there is no such database or container", fact="name")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return WriteSetTooLargeError("the service refuses a write of this size")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return ProviderThrottledError("the account is too busy", retry_after_ms=_delay(headers))
    return ProviderUnavailableError(f"the service refused: {status}/{substatus}")


def _delay(headers: Mapping[str, str]) -> int:
    try:
        return min(max(0, math.ceil(float(headers[RETRY_AFTER]))), _RETRY_MS_MAX)
    except (KeyError, ValueError, OverflowError):
        return RETRY_MS
