"""Metrics count, and the endpoint shows them."""

import socket
import urllib.request
from http import HTTPStatus

import pytest

from broker.supervision.port import reserved
from broker.telemetry.metrics import Metrics, serve_metrics


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_calls_are_counted_by_method_code_and_reason() -> None:
    metrics = Metrics()
    metrics.call_started()
    metrics.call_started()
    assert sample(metrics, "broker_calls_in_flight") == 2
    for _ in range(2):
        metrics.call_finished("/a.B/C", "NOT_FOUND", "RECORD_NOT_FOUND", 0.02)
    labels = {"method": "/a.B/C", "code": "NOT_FOUND", "reason": "RECORD_NOT_FOUND"}
    assert sample(metrics, "broker_calls_total", **labels) == 2
    assert sample(metrics, "broker_call_duration_seconds_count", method="/a.B/C") == 2
    assert sample(metrics, "broker_calls_in_flight") == 0


def test_admission_and_the_calls_of_others_are_shown() -> None:
    metrics = Metrics()
    metrics.watch_admission(queued=lambda: 3, running=lambda: 32)
    metrics.admission_refused("caller")
    metrics.owner_call("GetRunAuthority", "ok", 0.01)
    metrics.provider_call("pg-main", "commit", "ProviderUnavailableError", 0.01)
    assert sample(metrics, "broker_admission_queue_length") == 3
    assert sample(metrics, "broker_admission_running") == 32
    assert sample(metrics, "broker_admission_refusals_total", limit="caller") == 1
    owner = {"method": "GetRunAuthority", "outcome": "ok"}
    assert sample(metrics, "broker_owner_call_duration_seconds_count", **owner) == 1
    provider = {
        "provider_id": "pg-main",
        "operation": "commit",
        "outcome": "ProviderUnavailableError",
    }
    assert sample(metrics, "broker_provider_call_duration_seconds_count", **provider) == 1


def test_two_sets_of_metrics_do_not_meet() -> None:
    Metrics().method_unknown()
    labels = {"method": "unknown", "code": "UNIMPLEMENTED", "reason": ""}
    assert sample(Metrics(), "broker_calls_total", **labels) is None


def test_the_endpoint_shows_them_on_loopback_until_it_is_stopped() -> None:
    metrics = Metrics()
    metrics.method_unknown()
    port, stop = serve_metrics(metrics, port=0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
            text = page.read().decode()
    finally:
        stop()
    assert 'broker_calls_total{code="UNIMPLEMENTED",method="unknown",reason=""} 1.0' in text
    assert "process_cpu_seconds_total" in text


def test_a_port_that_is_kept_is_only_for_who_shares_it() -> None:
    with reserved("server.metrics_listen", "127.0.0.1:0") as address:
        kept = int(address.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            serve_metrics(Metrics(), kept)
        port, stop = serve_metrics(Metrics(), kept, shared=True)
        stop()
    assert port == kept


def test_a_port_that_is_not_kept_is_not_shared() -> None:
    """Two brokers on one port would each get half of what is asked."""
    port, stop = serve_metrics(Metrics(), port=0)
    try:
        with pytest.raises(OSError, match="in use"):
            serve_metrics(Metrics(), port, shared=True)
    finally:
        stop()


def has_ipv6() -> bool:
    """Tell whether this machine has the loopback address of IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_an_address_may_be_of_the_newer_family() -> None:
    """Where the machine has none, that is an error at the start and nothing else is served."""
    if not has_ipv6():
        with pytest.raises(OSError, match=r"family|address"):
            serve_metrics(Metrics(), 0, "::1")
        return
    port, stop = serve_metrics(Metrics(), 0, "::1")
    try:
        with urllib.request.urlopen(f"http://[::1]:{port}/metrics", timeout=10) as page:
            assert page.status == HTTPStatus.OK
    finally:
        stop()
