"""The compose file: its form, and its jobs and scripts run without containers."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from broker.config import verify_dsn
from broker.devstack.events.journal import Journal
from providers.errors import ProviderError
from providers.postgres.options import PostgresOptions
from providers.postgres.provider import PostgresMemoryProvider
from tests.deploy import dockerfile
from tests.deploy.files import DEPLOY, ROOT, compose, tool
from tests.deploy.operator import Operator

SERVICES = compose()["services"]
OURS = ("migrate", "init-resource", "dev")
SOCKETS = "/var/run/postgresql"
DSNS = {
    "migration_dsn": "broker_migrator",
    "runtime_dsn": "broker_runtime",
    "events_dsn": "broker_events",
}


def test_the_schema_of_compose_accepts_it() -> None:
    arguments = ("--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")
    done = tool("check-jsonschema", *arguments)
    assert done.returncode == 0, done.stdout


def test_nothing_listens_beyond_this_machine() -> None:
    assert not any("ports" in service for service in SERVICES.values())
    networks = {name: service["network_mode"] for name, service in SERVICES.items()}
    assert networks.pop("dev") == "host"  # where `broker dev` listens on loopback only
    assert set(networks.values()) == {"none"}
    assert SERVICES["postgres"]["command"] == ["postgres", "-c", "listen_addresses="]


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_may_do_little(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "pid", "ipc"} & service.keys()


def test_passwords_come_from_files_only() -> None:
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if variable.endswith(("_DSN", "_DSN_FILE", "_PASSWORD", "_PASSWORD_FILE")):
                assert variable.endswith("_FILE")
                assert Path(value).name in service["secrets"]
        assert set(service.get("secrets", [])) <= compose()["secrets"].keys()
    assert "migration_dsn" not in SERVICES["dev"]["secrets"]


def test_images_are_pinned_and_ours_are_targets_of_the_dockerfile() -> None:
    assert SERVICES["postgres"]["image"].startswith("postgres:18.")
    for name in OURS:
        build = SERVICES[name]["build"]
        assert (DEPLOY / build["context"]).resolve() == ROOT
        assert ROOT / build["dockerfile"] == dockerfile.PATH
    assert SERVICES["dev"]["build"]["target"] == "dev" in dockerfile.stages()
    assert "target" not in SERVICES["migrate"]["build"]


def test_each_waits_for_what_it_needs() -> None:
    waits = {name: SERVICES[name]["depends_on"] for name in OURS}
    assert waits == {
        "migrate": {"postgres": {"condition": "service_healthy"}},
        "init-resource": {"migrate": {"condition": "service_completed_successfully"}},
        "dev": {"init-resource": {"condition": "service_completed_successfully"}},
    }


# -------------------- secrets


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What make-secrets writes, beside a copy of it."""
    script = shutil.copy(DEPLOY / "compose" / "make-secrets", tmp_path)
    for _ in range(2):  # the second time it leaves them alone
        subprocess.run([script], check=True, capture_output=True)
    return tmp_path / "secrets"


def test_secrets_are_drawn_for_what_compose_names(secrets: Path) -> None:
    named = {Path(each["file"]) for each in compose()["secrets"].values()}
    assert {path.parent for path in named} == {Path("compose/secrets")}
    assert {path.name for path in named} == {path.name for path in secrets.iterdir()}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets.iterdir()} == {0o644}
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "deploy/compose/secrets/" in ignored


def test_addresses_lead_to_the_socket(secrets: Path) -> None:
    mounts = [volume.get("target") for volume in SERVICES["dev"]["volumes"][1:]]
    assert mounts == [SOCKETS]
    for name, role in DSNS.items():
        dsn = (secrets / name).read_text()
        verify_dsn(name, dsn)
        parts = urlsplit(dsn)
        assert parts.username == role
        assert parts.path == "/knowledge"
        assert parse_qs(parts.query) == {"host": [SOCKETS]}


# -------------------- the jobs, with a server that is not in a container


async def test_the_jobs_prepare_the_database_for_dev(newcomer: Operator, secrets: Path) -> None:
    """What the image runs, in its order, then the commands of the jobs, twice."""
    mounted = {each.split(":")[1] for each in SERVICES["postgres"]["volumes"][2:]}
    folder = "/docker-entrypoint-initdb.d"
    scripts = ("10-roles.sql", "15-events.sql", "20-passwords.sh")
    assert mounted == {f"{folder}/{name}" for name in scripts}
    server = urlsplit(newcomer.server.superuser_dsn)
    here = f"?host={newcomer.server.socket_dir}&port={newcomer.server.port}"
    for name in DSNS:
        text = (secrets / name).read_text().replace(f"?host={SOCKETS}", here)
        (secrets / name).write_text(text)
    newcomer.run("roles")
    newcomer.psql((DEPLOY / "compose" / "events.sql").read_text(), database="postgres")
    script = (DEPLOY / "compose" / "passwords.sh").read_text()
    access = f"PGHOST={server.hostname} PGPORT={server.port} PGPASSWORD={server.password}"
    newcomer.shell(f"export {access}\n" + script.replace("/run/secrets", str(secrets)))
    for _ in range(2):
        for name in ("migrate", "init-resource"):
            assert SERVICES[name]["environment"] == {
                "BROKER_MIGRATION_DSN_FILE": "/run/secrets/migration_dsn"
            }
            words = " ".join(SERVICES[name]["command"])
            newcomer.shell(
                f"export BROKER_MIGRATION_DSN_FILE={secrets}/migration_dsn; broker {words}"
            )
    _, _, resource, *_ = SERVICES["init-resource"]["command"]
    dsn = (secrets / "runtime_dsn").read_text()
    provider = PostgresMemoryProvider(
        PostgresOptions(
            dsn=dsn,
            resource_id=resource,
            generation=1,
            database_name="knowledge",
            options_revision="v1",
        )
    )
    try:
        await provider.negotiate(timeout=10)
    except ProviderError as error:
        pytest.fail(str(error))
    finally:
        await provider.close()
    journal = Journal((secrets / "events_dsn").read_text())
    await journal.open()
    await journal.close()


# -------------------- the health check of dev


@contextmanager
def healthy(status: int) -> Iterator[int]:
    """A server whose health says ``status``; its port."""
    servicer = health.HealthServicer()
    servicer.set("", status)
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(0)


def check(port: int) -> int:
    kind, program, option, code = SERVICES["dev"]["healthcheck"]["test"]
    assert (kind, program, option) == ("CMD", "python", "-c")
    assert "127.0.0.1:7401" in code
    code = code.replace(":7401", f":{port}")
    environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL, check=False
    ).returncode


def test_the_health_check_tells_ready_from_not_ready() -> None:
    with healthy(health_pb2.HealthCheckResponse.SERVING) as port:
        assert check(port) == 0
    with healthy(health_pb2.HealthCheckResponse.NOT_SERVING) as port:
        assert check(port) == 1
    assert check(port) == 1  # nobody is there
