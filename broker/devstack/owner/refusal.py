"""How the owner says no."""

from __future__ import annotations

import grpc


class RefusalError(Exception):
    """A call that is not answered.

    Attributes:
        code: The status of the call.
        message: What the caller reads.
    """

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        """Keeps status and message."""
        super().__init__(message)
        self.code = code
        self.message = message


def unauthenticated(message: str) -> RefusalError:
    """The token is missing or does not count."""
    return RefusalError(grpc.StatusCode.UNAUTHENTICATED, message)


def denied(message: str) -> RefusalError:
    """The token counts, and its holder may not."""
    return RefusalError(grpc.StatusCode.PERMISSION_DENIED, message)


def invalid(message: str) -> RefusalError:
    """The request breaks the contract."""
    return RefusalError(grpc.StatusCode.INVALID_ARGUMENT, message)


def unavailable(message: str) -> RefusalError:
    """Nothing can be said now."""
    return RefusalError(grpc.StatusCode.UNAVAILABLE, message)
