"""Lines show what is allowed and nothing else."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import structlog

from broker.telemetry.logs import configure_logging, describe, logger
from broker.telemetry.redaction import MASK, redact

CANARY = "canary-7f3a"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl"


@pytest.fixture
def stream() -> Iterator[io.BytesIO]:
    """Send the lines of one test to memory."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = io.BytesIO()
    configure_logging(written)
    yield written
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_time_level_component_and_process(stream: io.BytesIO) -> None:
    logger("edge").info("started", port=7)
    (line,) = lines(stream)
    assert set(line) == {"event", "level", "timestamp", "pid", "component", "port"}
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    "fields",
    [
        {"content": CANARY},
        {"token": CANARY},
        {"record_id": CANARY},
        {"subject": CANARY},
        {"reason": {"text": CANARY}},
        {"reason": [CANARY]},
        {"reason": ValueError(CANARY)},
        {"reason": CANARY.encode()},
        {"reason": f"Bearer {CANARY}"},
        {"reason": f"said bearer  {CANARY} and more"},
        {"reason": f"Basic {CANARY}"},
        {"reason": "x" * 300 + CANARY},
    ],
    ids=str,
)
def test_nothing_else_is_shown(stream: io.BytesIO, fields: dict[str, Any]) -> None:
    logger("edge").info("event", **fields)
    assert CANARY not in stream.getvalue().decode()


@pytest.mark.parametrize("text", [JWT, f"a {JWT} b", JWT.rpartition(".")[0], f"Bearer {JWT}"])
def test_tokens_are_masked_wherever_they_stand(text: str) -> None:
    shown = redact(None, "info", {"event": text, "request_id": text})
    assert MASK in shown["event"]
    assert "eyJ" not in orjson.dumps(dict(shown)).decode()


def test_plain_values_are_shown_as_they_are() -> None:
    event = {"code": "OK", "reason": None, "replayed": True, "duration_ms": 1.5, "count": 3}
    assert redact(None, "info", dict(event)) == event


def test_lines_of_libraries_lose_their_text(stream: io.BytesIO) -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("some.library").exception("failed on %s", CANARY)
    logging.getLogger("some.library").debug("chatter")
    (line,) = lines(stream)
    assert CANARY not in str(line)
    assert (line["logger"], line["error_type"]) == ("some.library", "ValueError")
    assert line["level"] == "error"


def test_errors_are_described_by_type_cause_and_place() -> None:
    try:
        try:
            raise OSError(CANARY)
        except OSError as error:
            raise KeyError(CANARY) from error
    except KeyError as error:
        described = describe(error)
    assert described["error_type"] == "KeyError from OSError"
    assert described["location"].startswith(f"{__name__}:")
    assert CANARY not in str(described)
    assert describe(ValueError(CANARY)) == {"error_type": "ValueError"}
