"""Page sizes and page tokens (AIP-158).

A token is a version, a digest of everything that must stay the same from page to page, and the
position reached. It holds no query text and no secret, works on every worker, and outlives
restarts. It is at most 512 bytes.
"""

import base64
import binascii
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from broker.domain.errors import PageTokenInvalidError, Violation
from broker.domain.fields import Violations, is_identifier
from broker.domain.requests import Unknown

PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 100
TOKEN_BYTES_MAX: Final = 512
REPLY_BYTES_MAX: Final = 3 * 1024 * 1024
_VERSION: Final = 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DIGEST_LENGTH: Final = 24


def page_limit(violations: Violations, page_size: int) -> int:
    """Return how many items a page may hold: 0 means 50, more than 100 means 100."""
    if page_size < 0:
        violations.append(Violation("page_size", "must not be negative"))
    return min(page_size or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)


def checked_view(violations: Violations, full: bool | Unknown) -> bool:
    """Return whether whole records are asked for."""
    if isinstance(full, Unknown):
        violations.append(Violation("view", "must be BASIC or FULL"))
        return False
    return full


def digest(*parts: object) -> str:
    """Return the digest of what a token is bound to: tenant, scope, method, filter, order."""
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:_DIGEST_LENGTH]


def page_token(bound_to: str, position: list[str | int]) -> str:
    """Return the token of a position."""
    return (
        base64.urlsafe_b64encode(orjson.dumps([_VERSION, bound_to, position])).rstrip(b"=").decode()
    )


def moment_token(bound_to: str, time: datetime, last_id: str) -> str:
    """Return the token of a position in what is ordered by time, then by id."""
    return page_token(bound_to, [(time - _EPOCH) // _MICROSECOND, last_id])


def moment_of(token: str, bound_to: str) -> tuple[datetime, str] | None:
    """Return the time and the id that a token holds, or ``None`` for the first page.

    Raises:
        PageTokenInvalidError: malformed, or of another request. Not retryable.
    """
    match position_of(token, bound_to):
        case None:
            return None
        case [int(microseconds), str(last_id)] if is_identifier(last_id):
            try:
                return _EPOCH + microseconds * _MICROSECOND, last_id
            except OverflowError as error:
                raise PageTokenInvalidError from error
        case _:
            raise PageTokenInvalidError


def check_token_syntax(token: str) -> None:
    """Refuse what cannot be a token before the owner is asked.

    Raises:
        PageTokenInvalidError: not retryable.
    """
    if token:
        _decoded(token)


def position_of(token: str, bound_to: str) -> list[str | int] | None:
    """Return the position a token holds, or ``None`` for the first page.

    Raises:
        PageTokenInvalidError: malformed, or of another request. Not retryable.
    """
    if not token:
        return None
    found, position = _decoded(token)
    if found != bound_to:
        raise PageTokenInvalidError
    return position


def _decoded(token: str) -> tuple[str, list[str | int]]:
    if len(token) > TOKEN_BYTES_MAX or not token.isascii():
        raise PageTokenInvalidError
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        match orjson.loads(raw):
            case [int(version), str(found), [*position]] if version == _VERSION and all(
                type(part) in {str, int} for part in position
            ):
                return found, position
    except (binascii.Error, ValueError):
        pass
    raise PageTokenInvalidError
