"""A broker as in production, for load: ``broker serve`` in processes of its own.

It serves over TLS, keeps memory in a database or a prefix of its own, asks an owner in a process of
its own, and writes logs and metrics.
"""

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from broker.devstack.provider import LISTINGS, Provider
from broker.devstack.settings import to_toml
from broker.devstack.tokens import ALGORITHM, AUDIENCE, TokenIssuer
from providers.interface import IMemoryProvider
from providers.postgres.provider import PostgresMemoryProvider
from providers.redis.provider import RedisMemoryProvider
from tests.bench.cases import Ground, Sample, cpu_seconds
from tests.bench.load import Load, Target
from tests.bench.neighbours import Authority, Neighbours, playground
from tests.bench.seeds import seed
from tests.bench.texts import AGENT, ISSUER, PROJECTS, TENANT
from tests.fixtures.broker import COMMAND, BrokerProcess, free_port
from tests.fixtures.memory import CAPABILITIES, Memory
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_memory import PostgresMemory
from tests.fixtures.redis_memory import RedisMemory, fresh_resource

PACKAGE = "/broker.api.v1."
CHANNELS = 4
"""Connections for each worker."""
LIFETIME = timedelta(hours=6)


class BrokerStand:
    """One broker, who it calls, and who calls it. Several cases may share it: it starts once.

    Attributes:
        command: What is run.
        pids: The processes that serve.
        memory: Where it keeps memory.
        settings_file: What it was started with.
        projects: What there is in the owner's eyes.
        neighbours: Whom it calls.
    """

    command = COMMAND

    def __init__(
        self,
        ground: Ground,
        provider: Provider,
        workers: int = 1,
        projects: Sequence[str] = PROJECTS,
    ) -> None:
        """Say what it is; nothing is started."""
        self._ground, self.provider_name, self._workers = ground, provider, workers
        self.projects = projects
        self._load = Load()
        self._users = 0
        self.neighbours: Neighbours | None = None
        self._broker: BrokerProcess | None = None
        self._target = Target("", "", "", 0)
        self._database: Database | None = None
        self._seeded: dict[str, list[str]] = {}
        self.pids: Sequence[int] = ()
        self.memory: Memory
        self.settings_file = Path()

    async def start(self) -> None:
        """Start all of it, unless it was."""
        self._users += 1
        if self._users > 1:
            return
        directory = Path(tempfile.mkdtemp(dir=self._ground.directory))
        tls, issuer = Authority(directory), TokenIssuer(directory / "keys", ISSUER)
        self._database = await self._ground.postgres.database()
        self.memory = self._made(self._database)
        self.neighbours = Neighbours(
            playground(self.provider_name, self.projects), directory, issuer.jwks_file, tls
        )
        self.neighbours.start()
        settings = self._settings(tls, issuer, await self.options())
        self.settings_file = directory / "broker.toml"
        self.settings_file.write_text(to_toml(settings), encoding="utf-8")
        self._broker = BrokerProcess(self.settings_file, directory / "broker.log", self.command)
        self._broker.start()
        self.pids = self._serving(self._broker)
        bearer = f"Bearer {issuer.mint(AGENT, tenant=TENANT, lifetime=LIFETIME)}"
        channels = CHANNELS * self._workers
        self._target = Target(self._broker.address, str(tls.ca_file), bearer, channels)
        await self._load.start()

    @property
    def bearer(self) -> str:
        """What callers show."""
        return self._target.bearer

    async def stop(self) -> None:
        """End all of it after its last user."""
        self._users -= 1
        if self._users > 0:
            return
        await self._load.stop()
        if self._broker is not None and self._broker.process is not None:
            self._broker.stop()
        if self.neighbours is not None:
            self.neighbours.stop()
        if self._database is not None:
            await self._ground.postgres.drop(self._database)

    @property
    def database(self) -> Database:
        """The database of its pins; of its memory too, where that is PostgreSQL."""
        assert self._database is not None
        return self._database

    async def run(self, rpc: str, requests: Sequence[Message], concurrency: int) -> Sample:
        """Make one call for each request, and tell what the broker's processes burnt."""
        given = [each.SerializeToString() for each in requests]
        burnt = cpu_seconds(self.pids)
        sample = await self._load.run(self._target, PACKAGE + rpc, given, concurrency)
        cpu_s = cpu_seconds(self.pids) - burnt
        return Sample(sample.calls, sample.seconds, sample.latencies, cpu_s)

    async def answers(self, rpc: str, requests: Sequence[Message]) -> list[bytes]:
        """Make one call for each request, and return the replies."""
        given = [each.SerializeToString() for each in requests]
        return await self._load.answers(self._target, PACKAGE + rpc, given)

    async def options(self) -> dict[str, Any]:
        """Return what the broker reaches its memory by."""
        return self.memory.options()

    async def seeded(self, name: str) -> list[str]:
        """Return the ids of the records of a project, which are made when first asked for."""
        if name not in self._seeded:
            provider = self.provider()
            try:
                self._seeded[name] = await seed(provider, name)
            finally:
                await provider.close()
        return self._seeded[name]

    def provider(self) -> IMemoryProvider:
        """Return a provider of this process, which is yet to be closed."""
        if isinstance(self.memory, RedisMemory):
            return RedisMemoryProvider(self.memory.backend.options())
        return PostgresMemoryProvider(self.database.options())

    def _made(self, database: Database) -> Memory:
        if self.provider_name is Provider.REDIS:
            return RedisMemory(fresh_resource(self._ground.redis), {TENANT})
        return PostgresMemory(database)

    def _serving(self, broker: BrokerProcess) -> list[int]:
        """Return the processes that serve: one, or the workers of a supervisor."""
        assert broker.process is not None
        pid = broker.process.pid
        if self._workers == 1:
            return [pid]
        told = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(each) for each in told.split()]

    def _settings(
        self, tls: Authority, issuer: TokenIssuer, options: dict[str, Any]
    ) -> dict[str, Any]:
        assert self.neighbours is not None
        peer = {"root_certificates_file": str(tls.ca_file), "timeout_seconds": 5.0}
        return {
            "server": {
                "listen": "127.0.0.1:0",
                "tls_certificate_file": str(tls.chain),
                "tls_key_file": str(tls.key),
                "workers": self._workers,
                "metrics_listen": f"127.0.0.1:{free_port()}",
                "drain_seconds": 5.0,
            },
            "owner": {"address": self.neighbours.owner, "streams": True, **peer},
            "events": {"address": self.neighbours.events, "audience": "events", **peer},
            "store": {"dsn": self.database.runtime_dsn},
            "issuers": [
                {
                    "issuer": ISSUER,
                    "audience": AUDIENCE,
                    "algorithms": [ALGORITHM],
                    "jwks_file": str(issuer.jwks_file),
                }
            ],
            "providers": [self._entry(options)],
        }

    def _entry(self, options: dict[str, Any]) -> dict[str, Any]:
        listing = LISTINGS[self.provider_name]
        return {
            "provider_id": listing.provider_id,
            "adapter": self.memory.adapter,
            "adapter_version": "1.0.0",
            "options_schema_version": 1,
            "options_revision": listing.options_revision,
            "hosting": listing.hosting,
            "advertised_capabilities": list(CAPABILITIES),
            "options": options,
        }
