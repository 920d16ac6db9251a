"""The composition root: the only place that constructs. One AsyncExitStack owns everything."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial

import grpc
import uuid_utils
from sqlalchemy.ext.asyncio import AsyncEngine

from broker.authority.channel import OwnerSettings as OwnerChannel
from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.authority.issuers import ClaimNames, KeysFile, KeysUrl, TrustedIssuer
from broker.authority.metered import MeteredOwner
from broker.authority.tokens import TokenVerifier
from broker.binding.binder import Binder
from broker.binding.catalog import Catalog, CatalogEntry
from broker.binding.metered import MeteredProvider
from broker.config import IssuerSettings, OwnerSettings, ProviderSettings, ServerSettings, Settings
from broker.domain.ports import AuthorityPort
from broker.readiness import ConfigurationError, Readiness
from broker.server.admission import Admission
from broker.server.app import EdgeServer, Listener, ServedService
from broker.server.interceptors import EdgeInterceptor
from broker.server.record_servicer import record_service
from broker.services.access import AccessPath
from broker.services.record_reads import RecordReads
from broker.services.record_writes import RecordWrites
from broker.store.pins import PostgresPinStore
from broker.telemetry.logs import logger
from broker.telemetry.metrics import Metrics, serve_metrics
from providers.capabilities import Capability
from providers.migration import open_engine
from providers.registry import adapter


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """Serve from here until the context ends; gives ``host:port``. Then drain and close.

    What cannot be reached does not stop the start: the broker then serves, and its health says
    NOT_SERVING until everything answers. What must not be served with does.

    Raises:
        ConfigurationError: a setting does not fit, a live resource is not fit, or the address
            cannot be listened on.
    """
    async with AsyncExitStack() as stack:
        metrics = _metrics(settings.server, stack)
        engine = _engine(settings, stack)
        entries = [_entry(provider, metrics, stack) for provider in settings.providers]
        verifier = _verifier(settings.issuers, stack)
        access = AccessPath(
            _authority(settings.owner, metrics, stack),
            Binder(Catalog(entries), PostgresPinStore(engine)),
        )
        stack.push_async_callback(access.drain)
        server = EdgeServer(
            services=_services(access),
            interceptor=EdgeInterceptor(
                verifier=verifier, admission=Admission(), metrics=metrics, log=logger("edge")
            ),
            listener=_listener(settings.server),
            reflect=settings.server.reflection,
        )
        readiness = Readiness(engine, verifier, entries)
        await readiness.refuse_unfit()
        port = await _listening(server, settings.server.listen)
        stack.push_async_callback(server.drain, settings.server.drain_seconds)
        await stack.enter_async_context(readiness.watched(server.ready))
        yield f"{settings.server.listen.rpartition(':')[0]}:{port}"


def _metrics(server: ServerSettings, stack: AsyncExitStack) -> Metrics:
    metrics = Metrics()
    if server.metrics_listen is not None:
        host, _, port = server.metrics_listen.rpartition(":")
        try:
            _, stop = serve_metrics(metrics, int(port), host)
        except OSError as error:
            raise ConfigurationError(f"server.metrics_listen: {error}") from error
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
        keys = KeysFile(given.jwks_file)
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


def _authority(given: OwnerSettings, metrics: Metrics, stack: AsyncExitStack) -> AuthorityPort:
    try:
        client = OwnerClient(
            OwnerChannel(
                address=given.address,
                timeout_s=given.timeout_seconds,
                root_ca_file=given.root_certificates_file,
                client_certificate_file=given.client_certificate_file,
                client_key_file=given.client_key_file,
                plaintext_loopback=given.plaintext_loopback,
            )
        )
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"owner: {error}") from error
    stack.push_async_callback(client.aclose)
    return OwnerAuthority(MeteredOwner(client, metrics.owner_call))


def _services(access: AccessPath) -> list[ServedService]:
    writes = RecordWrites(access, SystemClock(), lambda: str(uuid_utils.uuid7()))
    return [record_service(writes, RecordReads(access))]


async def _listening(server: EdgeServer, address: str) -> int:
    """Listen; the port."""
    try:
        return await server.start()
    except RuntimeError as error:
        raise ConfigurationError(
            f"server.listen: {address} cannot be listened on, or the certificate is not usable"
        ) from error


def _listener(server: ServerSettings) -> Listener:
    if server.tls_certificate_file is None or server.tls_key_file is None:
        return Listener(address=server.listen)
    pair = (server.tls_key_file.read_bytes(), server.tls_certificate_file.read_bytes())
    return Listener(address=server.listen, credentials=grpc.ssl_server_credentials([pair]))


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, aware, UTC, in microseconds."""
        return datetime.now(UTC)
