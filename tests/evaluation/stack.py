"""A development stack of its own, in a temporary directory, as a site for scenarios."""

import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
from grpc import aio
from redis.asyncio import Redis

from broker.devstack import playground
from broker.devstack.data import DataDirectory
from broker.devstack.provider import LISTINGS, Provider
from broker.devstack.tokens import ISSUER, TokenIssuer
from providers.cosmos.keys import partition_of
from providers.model import ProjectKey
from providers.redis.keys import base_key, project_digest
from providers.redis.options import RedisOptions
from tests.evaluation.calls import Metadata
from tests.evaluation.site import Rows
from tests.fixtures.cosmos import cosmos_client
from tests.fixtures.cosmos_account import GivenAccount
from tests.fixtures.cosmos_history import rows_in

ROOT = Path(__file__).resolve().parents[2]
TENANT = "evaluation"
READY = re.compile(r"^The broker serves on (\S+) ", re.MULTILINE)
START_SECONDS = 120.0
STOP_SECONDS = 60.0


class StackFailedError(Exception):
    """The stack did not start. The message holds what it printed."""


class DevelopmentSite:
    """The broker of a running stack. Each change of members is a change of its playground."""

    def __init__(self, data: DataDirectory, address: str) -> None:
        """Use the stack that keeps its data there and serves at ``address``."""
        self._data, self._address = data, address
        self._tokens = TokenIssuer(data.keys)
        self._bearers: dict[str, str] = {}

    @property
    def issuer(self) -> str:
        """See ``Site``."""
        return ISSUER

    def channel(self) -> aio.Channel:
        """See ``Site``."""
        return aio.insecure_channel(self._address, options=[("grpc.enable_retries", 0)])

    def metadata(self, subject: str) -> Metadata:
        """See ``Site``."""
        if subject not in self._bearers:
            self._bearers[subject] = f"Bearer {self._tokens.mint(subject, tenant=TENANT)}"
        return [("authorization", self._bearers[subject])]

    async def open_project(
        self, project: str, *, members: Sequence[str], owners: Sequence[str], runs: Sequence[str]
    ) -> None:
        """See ``Site``."""
        # A token lasts for an hour, a conversation takes minutes.
        self._bearers.clear()
        with playground.edited(self._data.playground) as content:
            tenant = content["tenants"].setdefault(TENANT, {"membership_revision": 1})
            tenant["membership_revision"] += 1
            tenant.setdefault("projects", {})[project] = {
                "members": dict.fromkeys(members, "agent-runtime") | dict.fromkeys(owners, "owner"),
                "runs": {run: {} for run in runs},
            }

    async def dismiss(self, project: str, subject: str) -> None:
        """See ``Site``."""
        file = self._data.playground
        playground.revoke(file, subject=subject, tenant=TENANT, project=project)

    async def rows(self, project: str) -> Rows:
        """See ``Site``."""
        settings = tomllib.loads(self._data.settings.read_text(encoding="utf-8"))
        (entry,) = settings["providers"]
        return await _COUNTING[entry["adapter"]](entry["options"], project)


async def _in_postgres(options: Mapping[str, Any], project: str) -> Rows:
    connection = await asyncpg.connect(options["dsn"])
    try:
        counts = [
            int(
                await connection.fetchval(
                    f"SELECT count(*) FROM memory.{table} WHERE project_id = $1", project
                )
            )
            for table in ("records", "revisions", "receipts")
        ]
    finally:
        await connection.close()
    return Rows(*counts)


async def _in_redis(options: Mapping[str, Any], project: str) -> Rows:
    given = RedisOptions(options_revision="any", **options)
    base = base_key(given.key_prefix, project_digest(ProjectKey(TENANT, project)))
    client: Any = Redis(
        host=given.host,
        port=given.port,
        username=given.username,
        password=given.password,
        ssl=True,
        ssl_ca_certs=given.ca_file,
        protocol=2,
    )
    async with client:
        # The broker's user may ask for names and not for their number.
        kept = [await client.hkeys(base + name) for name in ("heads", "revisions", "receipts")]
    return Rows(*map(len, kept))


async def _in_cosmos(options: Mapping[str, Any], project: str) -> Rows:
    account = GivenAccount(options["endpoint"], options["key"], Path(options["ca_file"]))
    async with cosmos_client(account) as client:
        database = client.get_database_client(options["database"])
        found = database.get_container_client(options["container"]).query_items(
            "SELECT c.id, c.doc, c.ids FROM c",
            partition_key=partition_of(ProjectKey(TENANT, project)),
            max_item_count=1_000,
        )
        kept = {item["id"]: item async for item in found}
    return Rows(*(rows_in(kept, table) for table in ("records", "revisions", "receipts")))


_COUNTING: Mapping[str, Callable[[Mapping[str, Any], str], Awaitable[Rows]]] = {
    LISTINGS[Provider.POSTGRES].provider_id: _in_postgres,
    LISTINGS[Provider.REDIS].provider_id: _in_redis,
    LISTINGS[Provider.COSMOS].provider_id: _in_cosmos,
}


@contextmanager
def development_site(
    provider: Provider = Provider.POSTGRES, *, embeddings: bool = False
) -> Iterator[DevelopmentSite]:
    """Run a stack as a process of its own; it ends, and its data go, when this is left.

    Args:
        provider: What it keeps memory in.
        embeddings: Whether it has the local model.

    Raises:
        StackFailedError: It did not start.
    """
    with tempfile.TemporaryDirectory(prefix="broker-evaluation-") as place:
        # The database server may run under another account, which has to pass through.
        Path(place).chmod(0o711)
        directory, output = Path(place) / "stack", Path(place) / "output"
        command = ["-m", "broker", "dev", "--data", str(directory), "--port", "0"]
        command += ["--provider", provider]
        command += ["--embeddings", "local"] if embeddings else []
        with output.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            address = _address(process, output)
            yield DevelopmentSite(DataDirectory(directory), address)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _address(process: subprocess.Popen[bytes], output: Path) -> str:
    """Wait until a stack prints where it serves."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        printed = output.read_text(encoding="utf-8", errors="replace")
        if (found := READY.search(printed)) is not None:
            return found[1]
        if ended:
            break
        time.sleep(0.05)
    raise StackFailedError(f"the stack did not start:\n{output.read_text(errors='replace')}")
