"""How ``broker serve`` starts: as one process, or as a supervisor with processes of its own."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.config import ServerSettings, Settings, parse_settings, read_settings, verify
from broker.supervision.child import Launch
from broker.supervision.messages import READY, provider_name
from broker.supervision.port import reserved
from broker.supervision.supervisor import CannotServeError, Plan, Supervisor
from broker.telemetry.logs import configure_logging, logger

__all__ = ["CannotServeError", "Start", "reserved_start", "supervise"]

WORKER: Final = "broker.cli.worker"
HEALTH: Final = "broker.cli.health"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Verified settings, the text they came from, and the addresses that are kept for them."""

    settings: Settings
    text: str
    listen: str
    health_listen: str | None

    @property
    def is_supervised(self) -> bool:
        """Whether more than the serving process is needed."""
        return self.settings.server.workers > 1 or self.health_listen is not None


@contextmanager
def reserved_start(config: Path, workers: int | None) -> Iterator[Start]:
    """Read and verify the settings, and keep their ports until the context ends.

    The file is read once: a worker that is started again gets the same settings as the others.

    Raises:
        What ``parse_settings`` and ``verify`` raise.
        OSError: the file cannot be read, or an address cannot be listened on.
    """
    text = read_settings(config)
    settings = parse_settings(text, named=str(config))
    if workers is not None:
        server = settings.server.model_copy(update={"workers": workers})
        settings = settings.model_copy(update={"server": server})
    verify(settings, development=False)
    with ExitStack() as stack:
        listen = stack.enter_context(reserved("server.listen", settings.server.listen))
        health = settings.server.health_listen
        if health is not None:
            health = stack.enter_context(reserved("server.health_listen", health))
        yield Start(settings=settings, text=text, listen=listen, health_listen=health)


def supervise(start: Start) -> bool:
    """Run workers, and the health process where it is configured, until a signal comes.

    Returns:
        Whether everybody drained in time.

    Raises:
        AddressUnusableError: the metrics of a worker cannot be listened on.
        CannotServeError: see ``Supervisor.run``.
    """
    configure_logging()
    log = logger("supervisor")
    with ExitStack() as stack:
        metrics = [
            stack.enter_context(reserved("server.metrics_listen", address))
            for address in _metrics_addresses(start.settings.server)
        ]
        if start.health_listen is not None:
            log.info("health", port=int(start.health_listen.rpartition(":")[2]))
        return Supervisor(_plan(start, metrics), log).run()


def _metrics_addresses(server: ServerSettings) -> list[str]:
    """Return where the metrics of each worker are to be, in their order; none: nowhere."""
    if server.metrics_listen is None:
        return []
    host, _, first = server.metrics_listen.rpartition(":")
    return [f"{host}:{int(first) and int(first) + number}" for number in range(server.workers)]


def _plan(start: Start, metrics: Sequence[str]) -> Plan:
    """Return what to run, with the metrics of the workers at addresses that are kept for them."""
    server = start.settings.server
    providers = [each.provider_id for each in start.settings.providers if each.enabled]
    names = [READY, *map(provider_name, providers)]
    order = {"settings": start.text, "listen": start.listen}
    health = None
    if start.health_listen is not None:
        health = Launch(HEALTH, {"listen": start.health_listen, "names": names})
    addresses: Sequence[str | None] = metrics or [None] * server.workers
    return Plan(
        port=int(start.listen.rpartition(":")[2]),
        workers=[Launch(WORKER, {**order, "metrics_listen": address}) for address in addresses],
        health=health,
        names=names,
        drain_s=server.drain_seconds,
    )
