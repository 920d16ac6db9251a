"""The composition root: the only place that constructs. One AsyncExitStack owns everything."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import grpc
import uuid_utils
from sqlalchemy.ext.asyncio import AsyncEngine

from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.authority.issuers import ClaimNames, KeysFile, KeysUrl, TrustedIssuer
from broker.authority.jwk import read_key_set
from broker.authority.metered import MeteredOwner
from broker.authority.tokens import TokenVerifier
from broker.binding.binder import Binder
from broker.binding.catalog import Catalog, CatalogEntry
from broker.binding.metered import MeteredProvider
from broker.binding.native import NativeEffects
from broker.binding.project import ProjectBinder
from broker.config import (
    ContextSettings,
    EventsSettings,
    IssuerSettings,
    OwnerSettings,
    ProviderSettings,
    ServerSettings,
    Settings,
)
from broker.context.limits import ContextLimits
from broker.effects.client import EventsClient
from broker.effects.relay import Relay
from broker.openings import open_embeddings
from broker.outbound import PeerSettings
from broker.readiness import ConfigurationError, Look, Readiness, Tell
from broker.retrieval.fitness import Weights
from broker.server.admission import Admission
from broker.server.app import EdgeServer, Listener, ServedService
from broker.server.binding_servicer import binding_service
from broker.server.bundles import written_bundle
from broker.server.context_servicer import context_service
from broker.server.discovery_servicer import discovery_service
from broker.server.effect_servicer import EffectPorts, effect_service
from broker.server.interceptors import EdgeInterceptor
from broker.server.memory_servicer import MemoryPorts, memory_service
from broker.server.proposal_servicer import proposal_service
from broker.server.record_servicer import RecordPorts, record_service
from broker.server.transfer_servicer import transfer_service
from broker.services.access import AccessPath
from broker.services.bindings import BindingReads
from broker.services.contexts import Contexts
from broker.services.effects import Effects, UnscopedEffectReads
from broker.services.entries import Entries
from broker.services.forgetting import Forgetting
from broker.services.gate import Gate
from broker.services.head_writer import HeadWriter
from broker.services.memories import Memories
from broker.services.project_search import ProjectSearch
from broker.services.proposals import Proposals
from broker.services.recollections import Recollections
from broker.services.record_changes import RecordChanges
from broker.services.record_reads import RecordReads
from broker.services.record_search import RecordSearch
from broker.services.record_writes import RecordWrites
from broker.services.reindexing import Reindexing
from broker.services.transfers import Transfers
from broker.store.compilations import PostgresCompilationLog
from broker.store.pins import PostgresPinStore
from broker.telemetry.logs import logger
from broker.telemetry.metrics import Metrics, serve_metrics
from providers.capabilities import Capability
from providers.deliveries import UnscopedEffects
from providers.migration import open_engine
from providers.registry import adapter

DELIVERIES_MAX: Final = 128
"""Deliveries of a process that run at once; they hold no place among the running calls."""
DELIVERIES_WAITING_MAX: Final = 1_024


REINDEX_START_S: Final = 30.0
"""Seconds that a provider may take to say what it can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is a worker's own among those that share the settings.

    ``listen`` stands in for the setting, and so does ``metrics_listen``, an address that somebody
    keeps for this worker; ``tell`` is told what answers, again and again.
    """

    listen: str
    metrics_listen: str | None = None
    tell: Tell


@asynccontextmanager
async def serving(settings: Settings, part: Part | None = None) -> AsyncIterator[str]:
    """Serve from here until the context ends; gives ``host:port``. Then drain and close.

    What cannot be reached does not stop the start: the broker then serves, and its health says
    NOT_SERVING until everything answers. What must not be served with does.

    Raises:
        ConfigurationError: a setting does not fit, a live resource is not fit, or the address
            cannot be listened on.
    """
    part = part or Part(listen=settings.server.listen, tell=lambda _: None)
    async with AsyncExitStack() as stack:
        metrics = _metrics(settings.server, part, stack)
        engine = _engine(settings, stack)
        entries = [_entry(provider, metrics, stack) for provider in settings.providers]
        catalog = Catalog(entries)
        verifier = _verifier(settings.issuers, stack)
        authority, pins = _authority(settings.owner, metrics, stack), PostgresPinStore(engine)
        makers = Entries(open_embeddings(settings.embeddings, metrics, stack))
        access = AccessPath(authority, Binder(catalog, pins), makers)
        stack.push_async_callback(access.drain)
        relay = _relay(settings.events, metrics, stack)
        native = _native(entries) if settings.events.unscoped_reads else None
        services = [
            *_record_services(access, catalog),
            _memory_service(access, makers, Weights(**settings.recall.model_dump())),
            *_effect_services(access, relay, UnscopedEffectReads(authority, native)),
            _context_service(access, engine, settings.context),
            discovery_service(ProjectSearch(authority, pins, ProjectBinder(catalog), Gate())),
        ]
        server = EdgeServer(
            services=services,
            interceptor=EdgeInterceptor(
                verifier=verifier, admission=Admission(), metrics=metrics, log=logger("edge")
            ),
            listener=_listener(settings.server, part.listen),
            reflect=settings.server.reflection,
        )
        readiness = Readiness(engine, verifier, entries)
        await readiness.refuse_unfit()
        port = await _listening(server, part.listen)
        stack.push_async_callback(server.drain, settings.server.drain_seconds)
        await stack.enter_async_context(readiness.watched(partial(_tell, server, part)))
        yield f"{part.listen.rpartition(':')[0]}:{port}"


@asynccontextmanager
async def reindexing(settings: Settings, provider_id: str) -> AsyncIterator[Reindexing]:
    """Open what makes entries for the memories of one provider; nothing is served.

    Raises:
        ConfigurationError: no provider has this id, it cannot recall, or a setting does not fit.
        ProviderError: the live resource cannot be reached, or is not fit.
    """
    given = next((each for each in settings.providers if each.provider_id == provider_id), None)
    if given is None:
        raise ConfigurationError(f"providers: none has the id {provider_id}")
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        provider = _entry(given, metrics, stack).provider
        makers = Entries(open_embeddings(settings.embeddings, metrics, stack))
        live = await provider.negotiate(timeout=REINDEX_START_S)
        if Capability.RECALL not in live.capabilities:
            raise ConfigurationError(f"providers: {provider_id}: {live.absent[Capability.RECALL]}")
        vectors = Capability.VECTORS in live.capabilities
        pins = PostgresPinStore(_engine(settings, stack))
        yield Reindexing(given.provider_id, provider, makers, pins, vectors=vectors)


def _tell(server: EdgeServer, part: Part, look: Look) -> None:
    server.ready(serving=look.ready)
    part.tell(look)


def _metrics(server: ServerSettings, part: Part, stack: AsyncExitStack) -> Metrics:
    metrics = Metrics()
    is_kept = part.metrics_listen is not None
    address = part.metrics_listen if is_kept else server.metrics_listen
    if address is not None:
        host, _, port = address.rpartition(":")
        try:
            _, stop = serve_metrics(metrics, int(port), host.strip("[]"), shared=is_kept)
        except OSError as error:
            raise ConfigurationError(f"server.metrics_listen: port {port}: {error}") from error
        stack.callback(stop)
    return metrics


def _engine(settings: Settings, stack: AsyncExitStack) -> AsyncEngine:
    engine = open_engine(
        settings.store.dsn.get_secret_value(),
        pool_size=settings.store.pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    stack.push_async_callback(engine.dispose)
    return engine


def _entry(given: ProviderSettings, metrics: Metrics, stack: AsyncExitStack) -> CatalogEntry:
    """Open one provider; nothing is reached yet."""
    try:
        kind = adapter(given.adapter)
        advertised = frozenset(Capability(name) for name in given.advertised_capabilities)
        provider = kind.open({**given.options, "options_revision": given.options_revision})
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"providers: {given.provider_id}: {error}") from error
    if (given.adapter_version, given.options_schema_version) != (
        kind.version,
        kind.options_schema_version,
    ):
        raise ConfigurationError(
            f"providers: {given.provider_id}: the adapter is version {kind.version} with options "
            f"schema {kind.options_schema_version}"
        )
    stack.push_async_callback(provider.close)
    return CatalogEntry(
        provider_id=given.provider_id,
        adapter_version=given.adapter_version,
        options_schema_version=given.options_schema_version,
        options_revision=given.options_revision,
        hosting=given.hosting,
        advertised=advertised,
        enabled=given.enabled,
        provider=MeteredProvider(provider, partial(metrics.provider_call, given.provider_id)),
        unscoped=provider if isinstance(provider, UnscopedEffects) else None,
    )


def _verifier(issuers: tuple[IssuerSettings, ...], stack: AsyncExitStack) -> TokenVerifier:
    try:
        verifier = TokenVerifier([_issuer(issuer) for issuer in issuers])
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"issuers: {error}") from error
    stack.push_async_callback(verifier.aclose)
    return verifier


def _issuer(given: IssuerSettings) -> TrustedIssuer:
    keys: KeysFile | KeysUrl
    if given.jwks_file is not None:
        keys = _keys_file(given.jwks_file)
    else:
        keys = KeysUrl(given.jwks_url or "", given.jwks_ca_file)
    return TrustedIssuer(
        issuer=given.issuer,
        audience=given.audience,
        algorithms=frozenset(given.algorithms),
        keys=keys,
        claims=ClaimNames(**given.claims.model_dump()),
        leeway_s=given.leeway_seconds,
    )


def _keys_file(file: Path) -> KeysFile:
    """Refuse a key set that cannot be used; one that goes bad later is kept for a while."""
    try:
        read_key_set(file.read_bytes())
    except OSError as error:
        raise ValueError(f"jwks_file: {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"jwks_file: {file} cannot be used: {error}") from error
    return KeysFile(file)


def _authority(given: OwnerSettings, metrics: Metrics, stack: AsyncExitStack) -> OwnerAuthority:
    try:
        client = OwnerClient(_peer(given), streams=given.streams)
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"owner: {error}") from error
    stack.push_async_callback(client.aclose)
    return OwnerAuthority(MeteredOwner(client, metrics.owner_call))


def _peer(given: OwnerSettings | EventsSettings) -> PeerSettings:
    return PeerSettings(
        address=given.address,
        timeout_s=given.timeout_seconds,
        root_ca_file=given.root_certificates_file,
        client_certificate_file=given.client_certificate_file,
        client_key_file=given.client_key_file,
        plaintext_loopback=given.plaintext_loopback,
    )


def _relay(given: EventsSettings, metrics: Metrics, stack: AsyncExitStack) -> Relay:
    try:
        client = EventsClient(_peer(given))
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"events: {error}") from error
    stack.push_async_callback(client.aclose)
    relay = Relay(
        client,
        Admission(running_max=DELIVERIES_MAX, queue_max=DELIVERIES_WAITING_MAX),
        audience=given.audience,
        observe=metrics.delivery,
        log=logger("relay"),
    )
    stack.push_async_callback(relay.drain)
    return relay


def _native(entries: Sequence[CatalogEntry]) -> NativeEffects:
    return NativeEffects([entry.unscoped for entry in entries if entry.unscoped is not None])


def _writer(access: AccessPath) -> HeadWriter:
    return HeadWriter(access, SystemClock(), _new_id)


def _effect_services(
    access: AccessPath, relay: Relay, unscoped: UnscopedEffectReads
) -> list[ServedService]:
    return [
        proposal_service(Proposals(access, _writer(access), relay)),
        effect_service(EffectPorts(Effects(access, relay), unscoped)),
    ]


def _context_service(
    access: AccessPath, engine: AsyncEngine, given: ContextSettings
) -> ServedService:
    limits = ContextLimits(**given.model_dump())
    log = PostgresCompilationLog(engine)
    return context_service(Contexts(access, log, limits, clock=SystemClock(), new_id=_new_id))


def _record_services(access: AccessPath, catalog: Catalog) -> list[ServedService]:
    writer = _writer(access)
    ports = RecordPorts(
        writes=RecordWrites(access, writer),
        changes=RecordChanges(access, writer),
        reads=RecordReads(access),
        searches=RecordSearch(access),
    )
    return [
        record_service(ports),
        binding_service(BindingReads(access, catalog)),
        transfer_service(Transfers(access, SystemClock(), _new_id, written_bundle)),
    ]


def _memory_service(access: AccessPath, makers: Entries, weights: Weights) -> ServedService:
    writer = _writer(access)
    ports = MemoryPorts(
        remembering=Memories(access, writer, makers),
        recalling=Recollections(access, SystemClock(), makers, weights),
        forgetting=Forgetting(access, writer),
    )
    return memory_service(ports)


def _new_id() -> str:
    return str(uuid_utils.uuid7())


async def _listening(server: EdgeServer, address: str) -> int:
    """Listen; the port."""
    try:
        return await server.start()
    except RuntimeError as error:
        raise ConfigurationError(
            f"server.listen: {address} cannot be listened on, or the certificate is not usable"
        ) from error


def _listener(server: ServerSettings, address: str) -> Listener:
    age = server.max_connection_age_seconds
    if server.tls_certificate_file is None or server.tls_key_file is None:
        return Listener(address=address, connection_age_s=age)
    authorities = server.client_ca_file
    credentials = grpc.ssl_server_credentials(
        [(server.tls_key_file.read_bytes(), server.tls_certificate_file.read_bytes())],
        root_certificates=None if authorities is None else authorities.read_bytes(),
        require_client_auth=authorities is not None,
    )
    return Listener(address=address, credentials=credentials, connection_age_s=age)


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, aware, UTC, in microseconds."""
        return datetime.now(UTC)
