"""What an operator can mend, told as one line."""

from typing import Final

from pydantic import ValidationError

from broker.safety import UnsafeConfigurationError

SETTINGS_REFUSALS: Final = (
    UnsafeConfigurationError,
    ValidationError,
    OSError,
    ValueError,
)
"""What settings and addresses are refused with."""


def readable(error: BaseException) -> str:
    """Return what an error tells an operator. Values of settings stay out: one may be secret."""
    from sqlalchemy.exc import DBAPIError  # a supervisor that serves does not need it

    if isinstance(error, ValidationError):
        problems = [
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
        return "; ".join(problems)
    if isinstance(error, DBAPIError) and error.orig is not None:
        # What the driver said; the statement stays out.
        error = error.orig if error.orig.__cause__ is None else error.orig.__cause__
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
