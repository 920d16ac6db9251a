"""Counters, gauges and histograms, and the endpoint that shows them."""

import socket
import threading
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    make_wsgi_app,
)

LOOPBACK: Final = "127.0.0.1"
DURATION_BUCKETS_S: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
)


class Metrics:
    """The metrics of one process. Label values are names of ours, never input."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register everything with ``registry``, by default a new one."""
        self.registry = registry or CollectorRegistry()
        self._in_flight = 0
        self._children: dict[tuple[object, ...], Counter | Histogram] = {}
        self._register_calls()
        self._register_peers()

    def _register_calls(self) -> None:
        self._calls = Counter(
            "broker_calls",
            "Finished calls.",
            ("method", "code", "reason"),
            registry=self.registry,
        )
        self._call_duration = Histogram(
            "broker_call_duration_seconds",
            "Time from the first interceptor to the reply or refusal.",
            ("method",),
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._gauge("broker_calls_in_flight", "Calls not finished.", lambda: self._in_flight)
        self._refusals = Counter(
            "broker_admission_refusals",
            "Calls refused: the queue or a caller's half of it is full, or the process ends.",
            ("limit",),
            registry=self.registry,
        )

    def _register_peers(self) -> None:
        self._owner_calls = Histogram(
            "broker_owner_call_duration_seconds",
            "Round trips to an owner.",
            ("method", "outcome"),
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._provider_calls = Histogram(
            "broker_provider_call_duration_seconds",
            "Round trips to a memory provider.",
            ("provider_id", "operation", "outcome"),
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )

        self._deliveries = Histogram(
            "broker_effect_delivery_duration_seconds",
            "Tries to deliver an accepted effect, by how they came out.",
            ("outcome",),
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._embeddings = Histogram(
            "broker_embedding_duration_seconds",
            "Tries to embed texts, by how they came out.",
            ("outcome",),
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )

    def _gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(read)

    def call_started(self) -> None:
        """Count a call as being in flight."""
        self._in_flight += 1

    def call_finished(self, method: str, code: str, reason: str, seconds: float) -> None:
        """Count a call as finished; ``reason`` is empty where the call succeeded."""
        self._in_flight -= 1
        self._counter(self._calls, method, code, reason).inc()
        self._histogram(self._call_duration, method).observe(seconds)

    def method_unknown(self) -> None:
        """Count a call of a method that is not served."""
        self._counter(self._calls, "unknown", "UNIMPLEMENTED", "").inc()

    def admission_refused(self, limit: str) -> None:
        """Count a refusal; ``limit`` is ``queue``, ``caller`` or ``draining``."""
        self._counter(self._refusals, limit).inc()

    def watch_admission(self, queued: Callable[[], int], running: Callable[[], int]) -> None:
        """Show how many calls wait and run, read when somebody looks."""
        self._gauge("broker_admission_queue_length", "Calls that wait for a slot.", queued)
        self._gauge("broker_admission_running", "Calls that hold a slot.", running)

    def owner_call(self, method: str, outcome: str, seconds: float) -> None:
        """Record a round trip to an owner; ``outcome`` is ``ok`` or a reason."""
        self._histogram(self._owner_calls, method, outcome).observe(seconds)

    def provider_call(self, provider_id: str, operation: str, outcome: str, seconds: float) -> None:
        """Record a round trip to a provider; ``outcome`` is ``ok`` or the name of an error type."""
        self._histogram(self._provider_calls, provider_id, operation, outcome).observe(seconds)

    def delivery(self, outcome: str, seconds: float) -> None:
        """Record a try to deliver an effect; ``outcome`` is ``delivered`` or a delivery code."""
        self._histogram(self._deliveries, outcome).observe(seconds)

    def embedding(self, outcome: str, seconds: float) -> None:
        """Record a try to embed texts; ``outcome`` is ``ok``, a reason, or ``cancelled``."""
        self._histogram(self._embeddings, outcome).observe(seconds)

    def _counter(self, parent: Counter, *labels: str) -> Counter:
        child = self._children.get((parent, *labels))
        if not isinstance(child, Counter):
            child = self._children[(parent, *labels)] = parent.labels(*labels)
        return child

    def _histogram(self, parent: Histogram, *labels: str) -> Histogram:
        child = self._children.get((parent, *labels))
        if not isinstance(child, Histogram):
            child = self._children[(parent, *labels)] = parent.labels(*labels)
        return child


class _Quiet(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""


class _Endpoint(ThreadingMixIn, WSGIServer):
    """What ``start_http_server`` of the library starts, but for a port that may be shared."""

    daemon_threads = True

    def __init__(self, host: str, port: int, *, shared: bool) -> None:
        """Listen, on the first address of the host."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, where = found[0]
        self.allow_reuse_port = shared
        super().__init__((str(where[0]), port), _Quiet)


def serve_metrics(
    metrics: Metrics, port: int, host: str = LOOPBACK, *, shared: bool = False
) -> tuple[int, Callable[[], None]]:
    """Serve the metrics of this process over HTTP; return the port and what stops it.

    Port 0 takes a free one. Only loopback unless ``host`` says otherwise. It runs in a thread of
    its own, so it answers also when the event loop does not. Each worker process needs a port of
    its own; ``shared`` is for one that is kept for it, by a socket that does not listen.

    Raises:
        OSError: the port is taken.
    """
    ProcessCollector(registry=metrics.registry)
    PlatformCollector(registry=metrics.registry)
    GCCollector(registry=metrics.registry)
    server = _Endpoint(host, port, shared=shared)
    server.set_app(make_wsgi_app(metrics.registry))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop
