"""JSON lines on standard error."""

import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from broker.telemetry.redaction import redact

OWN_PACKAGES: Final = ("broker", "providers")


def configure_logging(stream: BinaryIO | None = None, level: int = logging.INFO) -> None:
    """Send every line of this process, also those of libraries, to ``stream`` as JSON.

    Call it once per process, before loggers are taken with ``logger``. ``stream`` is standard error
    by default.
    """
    structlog.configure(
        processors=[
            redact,  # what is added after it is ours
            structlog.processors.add_log_level,
            _rendered,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.BytesLoggerFactory(stream or sys.stderr.buffer),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_LibraryHandler()]
    root.setLevel(max(level, logging.WARNING))
    logging.captureWarnings(capture=True)


def logger(component: str) -> FilteringBoundLogger:
    """Return a logger that names its component. Take it after ``configure_logging``."""
    bound: FilteringBoundLogger = structlog.get_logger().bind(component=component)
    return bound


def describe(error: BaseException) -> dict[str, str]:
    """Return an error's type, its cause's type, and where it was raised. Never its text.

    The text of an error may hold input. The location is the deepest frame of our own code, as
    module and line.
    """
    cause = error.__cause__
    name = type(error).__name__
    described = {"error_type": f"{name} from {type(cause).__name__}" if cause else name}
    location = _location(error)
    if location is not None:
        described["location"] = location
    return described


def _location(error: BaseException) -> str | None:
    location = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        if location is None or module.partition(".")[0] in OWN_PACKAGES:
            location = f"{module}:{line}"
    return location


def _rendered(_logger: Any, _method: str, event: EventDict) -> bytes:
    event["timestamp"] = datetime.now(UTC)
    event["pid"] = os.getpid()
    return orjson.dumps(event, option=orjson.OPT_UTC_Z)


class _LibraryHandler(logging.Handler):
    """Writes what came through the standard library's loggers: libraries, never our own packages.

    Their texts may hold input and are left out.
    """

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        structlog.get_logger().log(
            record.levelno,
            "library_message",
            logger=record.name,
            **{
                "location": f"{record.module}:{record.lineno}",
                **(describe(error) if error else {}),
            },
        )
