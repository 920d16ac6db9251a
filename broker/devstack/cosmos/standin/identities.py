"""Ids that people choose, and ids and etags that the service gives."""

from __future__ import annotations

import base64
import secrets
from uuid import uuid4

from broker.devstack.cosmos.standin.refusals import invalid

ID_LENGTH = 255
_FORBIDDEN = set("/\\?#\t\r\n")


def checked_id(value: object, what: str) -> str:
    """Returns an id.

    Raises:
        RefusalError: It is not a text of 1 to 255 characters, holds a slash, backslash, question
            mark, number sign, line break or tab, or ends with a space.
    """
    if not isinstance(value, str):
        raise invalid(f"{what} needs an id that is a text")
    if not 1 <= len(value) <= ID_LENGTH:
        raise invalid(f"the id of {what} has not 1 to {ID_LENGTH} characters")
    if _FORBIDDEN & set(value) or value.endswith(" "):
        raise invalid(f"the id of {what} holds a character that is not allowed there")
    return value


def new_etag() -> str:
    """Returns an etag that was never given before, in the quotes that belong to it."""
    return f'"{uuid4()}"'


def database_rid() -> str:
    """Returns the ``_rid`` of a new database."""
    return _encoded(secrets.token_bytes(4))


def container_rid(database: str) -> str:
    """Returns the ``_rid`` of a new container in a database."""
    return _encoded(_decoded(database) + b"\x80" + secrets.token_bytes(3))


def item_rid(container: str, number: int) -> str:
    """Returns the ``_rid`` of an item."""
    return _encoded(_decoded(container) + number.to_bytes(8, "little"))


def _encoded(value: bytes) -> str:
    return base64.b64encode(value, altchars=b"+-").decode()


def _decoded(value: str) -> bytes:
    return base64.b64decode(value, altchars=b"+-")
