"""What does not answer is told once, with its reason and nothing secret."""

import ssl
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker.telemetry.troubles import Troubles, address_fault
from providers.errors import NegotiationRefusedError


class ServerError(Exception):
    """As a driver raises it."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("hush-hush")
        self.sqlstate = sqlstate


def caused(cause: Exception) -> Exception:
    error = RuntimeError("hush-hush")
    error.__cause__ = cause
    return error


def lines(troubles: Troubles, found: dict[str, Exception]) -> list[dict[str, Any]]:
    with capture_logs() as logs:
        troubles.tell(found)
    assert "hush-hush" not in str(logs)
    assert all(line["component"] == "readiness" for line in logs)
    return [dict(line) for line in logs]


def test_a_line_is_written_when_the_state_or_the_reason_changes() -> None:
    troubles = Troubles()
    (first,) = lines(troubles, {"store": caused(ServerError("57P03"))})
    assert (first["state"], first["what"]) == ("not_serving", "store")
    assert (first["error_type"], first["sqlstate"]) == ("RuntimeError from ServerError", "57P03")
    assert lines(troubles, {"store": caused(ServerError("57P03"))}) == []
    (other,) = lines(troubles, {"store": caused(ServerError("28P01"))})
    assert "password" in other["reason"]
    (more,) = lines(troubles, {"store": caused(ServerError("28P01")), "keys": OSError()})
    assert more["what"] == "keys"
    (less,) = lines(troubles, {"keys": OSError()})
    assert (less["event"], less["what"]) == ("answers_again", "store")
    assert [line.get("state") for line in lines(troubles, {})] == [None, "serving"]
    assert lines(troubles, {}) == []


def test_the_fact_that_a_store_is_refused_with_is_told() -> None:
    """004-101: in one word, also where another error wraps the refusal; it changing is told."""
    troubles = Troubles()
    refused = NegotiationRefusedError("hush-hush", fact="aof")
    (first,) = lines(troubles, {"provider/redis": refused})
    assert (first["error_type"], first["fact"]) == ("NegotiationRefusedError", "aof")
    assert lines(troubles, {"provider/redis": refused}) == []
    refused.fact = "eviction"
    (other,) = lines(troubles, {"provider/redis": caused(refused)})
    assert other["fact"] == "eviction"
    (plain,) = lines(troubles, {"provider/redis": OSError("hush-hush")})
    assert "fact" not in plain


def test_the_first_good_look_is_told() -> None:
    assert [line["state"] for line in lines(Troubles(), {})] == ["serving"]


@pytest.mark.parametrize(
    ("cause", "is_fault"),
    [
        (ServerError("28P01"), True),
        (ServerError("28000"), True),
        (ServerError("42704"), True),
        (ValueError("hush-hush"), True),
        (ServerError("57P03"), False),
        (ConnectionRefusedError("hush-hush"), False),
        (ssl.SSLCertVerificationError("hush-hush"), False),
    ],
    ids=str,
)
def test_an_address_that_cannot_do_is_told_apart(cause: Exception, is_fault: bool) -> None:
    fault = address_fault(caused(cause))
    assert (fault is not None) is is_fault
    assert "hush-hush" not in str(fault)
