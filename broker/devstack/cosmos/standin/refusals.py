"""How the stand-in says no."""

from __future__ import annotations

PARTITION_KEY_MISMATCH = 1001
OWNER_NOT_FOUND = 1003
CROSS_PARTITION = 1004
CONTAINER_CHANGED = 1024
NOT_ALLOWED_BY_TOKEN = 5300

CODES = {
    304: "NotModified",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    429: "429",
    449: "RetryWith",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}


class RefusalError(Exception):
    """A request, or an operation of a batch, that is not carried out.

    Attributes:
        status: The HTTP status.
        message: What the caller reads; it holds nothing of a document.
        substatus: The number that tells refusals of one status apart.
    """

    def __init__(self, status: int, message: str, substatus: int = 0) -> None:
        """Keeps status, message and substatus."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.substatus = substatus


def invalid(message: str, substatus: int = 0) -> RefusalError:
    """The request breaks a rule, or asks for what this stand-in does not know."""
    return RefusalError(400, message, substatus)


def unauthorised(message: str) -> RefusalError:
    """The request is not signed, or not with the key of this account."""
    return RefusalError(401, message)


def absent(what: str, substatus: int = 0) -> RefusalError:
    """There is no such thing."""
    return RefusalError(404, f"{what} does not exist", substatus)


def existing(what: str) -> RefusalError:
    """There is such a thing already."""
    return RefusalError(409, f"{what} exists already")


def stale() -> RefusalError:
    """The etag given is not the current one."""
    return RefusalError(412, "the etag in If-Match is not the current one")


def too_large(what: str, size: int, limit: int) -> RefusalError:
    """Something has too many bytes."""
    return RefusalError(413, f"{what} has {size} bytes; at most {limit} are allowed")
