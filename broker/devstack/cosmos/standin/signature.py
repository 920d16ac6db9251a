"""Who sent a request: the account's key signs its method, path and date."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from broker.devstack.cosmos.standin.calls import Call
from broker.devstack.cosmos.standin.refusals import RefusalError, unauthorised

SKEW = timedelta(minutes=15)
"""How far the date of a request may be from the time here."""


def check(call: Call, key: str, bearer: str) -> bool:
    """Checks who sent a request, and returns whether it was signed with the account's key.

    Args:
        call: The request.
        key: The account's key, in base64.
        bearer: A token that is accepted as that of a known identity; empty for none. Such a
            request may read and write items and nothing else.

    Raises:
        RefusalError: The signature or the token is missing or wrong (401), or the date that was
            signed is too far from now (403).
    """
    given = unquote(call.headers.get("authorization", ""))
    parts = dict(part.partition("=")[::2] for part in given.split("&"))
    if parts.get("ver") != "1.0" or not parts.get("sig"):
        raise unauthorised("the authorization header is missing, or of a form not known here")
    if parts.get("type") == "aad":
        if not bearer or not _same(parts["sig"], bearer):
            raise unauthorised("the token is not known here")
        return False
    if parts.get("type") != "master":
        raise unauthorised("the authorization is of a type not known here")
    date = call.headers.get("x-ms-date", "")
    if not date:
        raise unauthorised("a signed request needs the header x-ms-date")
    if not _same(parts["sig"], _signature(call, key, date)):
        raise unauthorised("the signature is not that of this request under the account's key")
    _check_date(date)
    return True


def _signature(call: Call, key: str, date: str) -> str:
    text = f"{call.method}\n{call.address.type}\n".lower() + f"{call.address.link}\n"
    text += f"{date}\n{call.headers.get('date', '')}\n".lower()
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _check_date(date: str) -> None:
    try:
        signed = parsedate_to_datetime(date)
    except ValueError:
        raise unauthorised("x-ms-date is not an RFC 1123 date") from None
    if signed.tzinfo is None or abs(datetime.now(UTC) - signed) > SKEW:
        raise RefusalError(403, "the authorization token is not valid at the current time")
