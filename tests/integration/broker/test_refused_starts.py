"""Starts that must not be: one readable line for the operator, and an exit code that says so."""

import asyncio
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.own_broker import (
    Change,
    Settings,
    WarmBroker,
    ended,
    settings_for,
    start_command,
)
from tests.fixtures.postgres import Database, PostgresBackend


def put(value: Any, *path: str | int) -> Change:
    """Change one setting."""

    def change(settings: Settings) -> None:
        place: Any = settings
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def twice(settings: Settings) -> None:
    """Let one provider id stand twice."""
    settings["providers"].append(settings["providers"][0])


def plaintext_owner(settings: Settings) -> None:
    """Call the owner without TLS, as the development stack does."""
    settings["owner"] = {"address": settings["owner"]["address"], "plaintext_loopback": True}


def plaintext_events(settings: Settings) -> None:
    """Call the Events service without TLS, as the development stack does."""
    given = settings["events"]
    settings["events"] = {
        "address": given["address"],
        "audience": given["audience"],
        "plaintext_loopback": True,
    }


def changed_dsn(path: Sequence[str | int], change: Callable[[str], str]) -> Change:
    """Change the address below a place in the settings."""

    def changed(settings: Settings) -> None:
        place: Any = settings
        for step in path:
            place = place[step]
        place["dsn"] = change(place["dsn"])

    return changed


def wrong_password(*path: str | int) -> Change:
    """Log in with a password that is not the role's."""
    return changed_dsn(path, lambda dsn: re.sub(r":[^:@/]+@", ":hush-hush@", dsn))


def malformed(*path: str | int) -> Change:
    """Give a parameter a value that it cannot have."""
    return changed_dsn(path, lambda dsn: f"{dsn.partition('?')[0]}?sslmode=hush-hush")


def strange(*path: str | int) -> Change:
    """Give a parameter that there is none of."""
    return changed_dsn(path, lambda dsn: f"{dsn}&hush=1")


PROVIDER = ("providers", 0)
OPTIONS = ("providers", 0, "options")
ENDPOINT = {"provider": "http", "endpoint": "https://m.test", "model": "m", "dimension": 3}
FAR = "postgresql://role:hush-hush@database.example/name"

# What is changed, and words of the line that tells of it.
UNFIT: dict[str, tuple[Change, tuple[str, ...]]] = {
    "unknown_key": (put(1, "server", "lissten"), ("server.lissten",)),
    "unknown_section": (put({"on": True}, "cache"), ("cache",)),
    "wrong_type": (put("many", "store", "pool_size"), ("store.pool_size",)),
    "no_issuer": (put([], "issuers"), ("issuers",)),
    "open_listener_without_tls": (put("0.0.0.0:0", "server", "listen"), ("server.listen",)),
    "half_a_certificate": (
        put("key.pem", "server", "tls_key_file"),
        ("server.tls_certificate_file", "server.tls_key_file"),
    ),
    "absent_certificate": (
        lambda settings: settings["server"].update(
            tls_key_file="absent-key.pem", tls_certificate_file="absent.pem"
        ),
        ("absent-key.pem",),
    ),
    "owner_in_plaintext": (plaintext_owner, ("owner.plaintext_loopback",)),
    "absent_owner_ca": (
        put("absent-ca.pem", "owner", "root_certificates_file"),
        ("owner", "absent-ca.pem"),
    ),
    "owner_without_a_port": (put("localhost", "owner", "address"), ("owner", "host:port")),
    "absent_events_ca": (
        put("absent-ca.pem", "events", "root_certificates_file"),
        ("events", "absent-ca.pem"),
    ),
    "embeddings_in_plaintext": (
        put(ENDPOINT | {"endpoint": "http://127.0.0.1/v1"}, "embeddings"),
        ("embeddings.endpoint", "https"),
    ),
    "embeddings_of_a_metadata_service": (
        put(ENDPOINT | {"endpoint": "https://169.254.169.254/v1"}, "embeddings"),
        ("embeddings.endpoint", "metadata service"),
    ),
    "embeddings_of_no_kind": (put({"provider": "remote"}, "embeddings"), ("embeddings",)),
    "absent_key_of_embeddings": (
        put(ENDPOINT | {"key_file": "absent-key"}, "embeddings"),
        ("embeddings", "absent-key"),
    ),
    "no_events": (lambda settings: settings.pop("events"), ("events",)),
    "events_in_plaintext": (plaintext_events, ("events.plaintext_loopback",)),
    "events_without_an_audience": (put("", "events", "audience"), ("events.audience",)),
    "issuer_of_the_development_stack": (
        put("https://dev.invalid", "issuers", 0, "issuer"),
        ("https://dev.invalid",),
    ),
    "issuer_over_http": (put("http://issuer.test", "issuers", 0, "issuer"), ("issuers.issuer",)),
    "symmetric_algorithm": (put(["HS256"], "issuers", 0, "algorithms"), ("issuers.0.algorithms",)),
    "unknown_adapter": (
        put("mongo.memory", *PROVIDER, "adapter"),
        ("providers", "native", "mongo.memory"),
    ),
    "wrong_adapter_version": (
        put("9.9.9", *PROVIDER, "adapter_version"),
        ("providers", "native", "1.0.0"),
    ),
    "wrong_options_schema": (
        put(7, *PROVIDER, "options_schema_version"),
        ("providers", "native", "schema 1"),
    ),
    "unknown_option": (put(1, *OPTIONS, "colour"), ("providers", "native", "colour")),
    "option_out_of_range": (put(0, *OPTIONS, "pool_size"), ("providers", "native", "pool_size")),
    "unknown_capability": (
        put(["memory.telepathy"], *PROVIDER, "advertised_capabilities"),
        ("providers", "native", "memory.telepathy"),
    ),
    "one_provider_id_twice": (twice, ("providers", "provider_id")),
    "far_store_without_tls": (put(FAR, "store", "dsn"), ("store.dsn", "sslmode=verify-full")),
    "far_store_with_half_a_tls": (
        put(f"{FAR}?sslmode=require", "store", "dsn"),
        ("store.dsn", "sslmode=verify-full"),
    ),
    "far_provider_without_tls": (put(FAR, *OPTIONS, "dsn"), ("native", "sslmode=verify-full")),
    "store_of_another_kind": (put("mysql://127.0.0.1/name", "store", "dsn"), ("store.dsn",)),
    "store_with_a_malformed_address": (malformed("store"), ("store.dsn", "address")),
    "store_with_an_unknown_parameter": (
        strange("store"),
        ("store.dsn", "address"),
    ),
    "store_with_a_wrong_password": (wrong_password("store"), ("store.dsn", "password", "28P01")),
    "provider_with_a_malformed_address": (malformed(*OPTIONS), ("native", "address")),
    "provider_with_a_wrong_password": (wrong_password(*OPTIONS), ("native", "password")),
    "store_with_an_absent_authority": (
        put(f"{FAR}?sslmode=verify-full&sslrootcert=/absent/ca.crt", "store", "dsn"),
        ("store.dsn", "sslrootcert", "/absent/ca.crt"),
    ),
    "store_with_the_authorities_of_the_system": (
        put(f"{FAR}?sslmode=verify-full&sslrootcert=system", "store", "dsn"),
        ("store.dsn", "sslrootcert=system"),
    ),
    "provider_with_an_absent_authority": (
        put(f"{FAR}?sslmode=verify-full&sslrootcert=/absent/ca.crt", *OPTIONS, "dsn"),
        ("native", "dsn", "sslrootcert", "/absent/ca.crt"),
    ),
    "absent_keys": (
        put("/absent/jwks.json", "issuers", 0, "jwks_file"),
        ("issuers", "jwks_file", "/absent/jwks.json"),
    ),
    "keys_that_are_none": (
        put("/proc/self/mounts", "issuers", 0, "jwks_file"),
        ("issuers", "jwks_file", "/proc/self/mounts"),
    ),
    "absent_authority_of_the_keys": (
        lambda settings: settings["issuers"].append(
            {
                "issuer": "https://another.test",
                "audience": "a",
                "algorithms": ["ES256"],
                "jwks_url": "https://another.test/keys",
                "jwks_ca_file": "/absent/ca.crt",
            }
        ),
        ("issuers.jwks_ca_file", "/absent/ca.crt"),
    ),
    "owner_ca_that_is_none": (
        put("/proc/self/mounts", "owner", "root_certificates_file"),
        ("owner.root_certificates_file", "/proc/self/mounts"),
    ),
    "absent_certificate_for_the_owner": (
        lambda settings: settings["owner"].update(
            client_certificate_file="/absent/tls.crt", client_key_file="/absent/tls.key"
        ),
        ("owner.client_key_file", "/absent/tls.key"),
    ),
    "unusable_port": (put("127.0.0.1:99999", "server", "listen"), ("server.listen",)),
    "bad_metrics_address": (put("metrics", "server", "metrics_listen"), ("metrics_listen",)),
}


@pytest.fixture
def settings(stand: Stand) -> Settings:
    """Settings that can be served with."""
    return settings_for(stand, stand.database)


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_settings_are_not_served_with(
    case: str, settings: Settings, warm_broker: WarmBroker
) -> None:
    """004-101 and the architecture's rule 5: refuse unsafe configuration, and name the setting."""
    change, words = UNFIT[case]
    change(settings)
    refused = warm_broker.serve(settings)
    refused.refused_with(*words)
    assert "hush-hush" not in refused.said


@pytest.mark.parametrize("trouble", ["absent", "folder", "not_toml", "not_text"])
def test_a_file_that_cannot_be_read_is_told(
    trouble: str, warm_broker: WarmBroker, tmp_path: Path
) -> None:
    """004-101: an operator's mistake, not a traceback."""
    file = tmp_path / "broker.toml"
    if trouble == "folder":
        file.mkdir()
    elif trouble != "absent":
        file.write_bytes(b"[server\n" if trouble == "not_toml" else b"\xff\xfe\x00")
    command = ("serve", "--config", str(file))
    cold = trouble == "absent"  # one of all these starts is an operator's in every respect
    refused = ended(start_command(*command)) if cold else warm_broker.run(*command)
    assert refused.code > 0
    assert "Traceback" not in refused.said
    if trouble != "folder":  # the parser of the command line tells of that one
        refused.refused_with("broker.toml")
    if trouble == "absent":
        refused.refused_with(f"broker: {file}: No such file")


@pytest.mark.parametrize("setting", ["listen", "metrics_listen"])
def test_a_port_that_is_taken_is_told(
    setting: str, settings: Settings, warm_broker: WarmBroker
) -> None:
    """004-101: also where several brokers may share a port, a stranger's is not shared."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings["server"][setting] = f"127.0.0.1:{taken.getsockname()[1]}"
        warm_broker.serve(settings).refused_with(f"server.{setting}")


def test_a_certificate_that_is_none_is_told(
    settings: Settings, warm_broker: WarmBroker, tmp_path: Path
) -> None:
    """004-101: files that are there and hold something else."""
    file = tmp_path / "no-certificate.pem"
    file.write_text("no certificate", encoding="utf-8")
    settings["server"] |= {"tls_certificate_file": str(file), "tls_key_file": str(file)}
    warm_broker.serve(settings).refused_with("server.tls_key_file", str(file), "key")


# -------------------- databases that must not be served with

OWNER = "ALTER TABLE {0} OWNER TO {{role}}".format
MARKER = "memory.resource"
SPOILT: dict[str, tuple[str, tuple[str, ...]]] = {
    "pins_at_another_revision": (
        "UPDATE knowledge.alembic_version SET version_num = '0000'",
        ("store", "broker migrate"),
    ),
    "pins_without_a_revision": ("DELETE FROM knowledge.alembic_version", ("store",)),
    "pins_may_be_deleted": ("GRANT DELETE ON knowledge.pins TO {role}", ("store", "rights")),
    "pins_may_be_changed": ("GRANT UPDATE ON knowledge.pins TO {role}", ("store", "rights")),
    "pins_belong_to_the_role": (OWNER("knowledge.pins"), ("store", "rights")),
    "pins_may_not_be_read": ("REVOKE SELECT ON knowledge.pins FROM {role}", ("store",)),
    "schema_may_not_be_used": ("REVOKE USAGE ON SCHEMA knowledge FROM {role}", ("store",)),
    "pins_guard_is_off": (
        "ALTER TABLE knowledge.pins DISABLE TRIGGER pins_immutable",
        ("store", "trigger"),
    ),
    "pins_guard_is_gone": ("DROP TRIGGER pins_kept ON knowledge.pins", ("store", "trigger")),
    "memory_at_another_revision": (
        "UPDATE memory.alembic_version SET version_num = '0000'",
        ("providers", "native", "0000"),
    ),
    "records_may_be_deleted": (
        "GRANT DELETE ON memory.records TO {role}",
        ("providers", "native", "DELETE on records"),
    ),
    "records_belong_to_the_role": (OWNER("memory.records"), ("providers", "native")),
    "a_guard_is_off": (
        "ALTER TABLE memory.revisions DISABLE TRIGGER revisions_are_kept",
        ("providers", "native", "trigger"),
    ),
    "marker_absent": (f"DELETE FROM {MARKER}", ("providers", "native", "init-resource")),
    "marker_of_another_generation": (
        f"UPDATE {MARKER} SET generation = 2",
        ("providers", "native", "generation"),
    ),
    "marker_of_another_resource": (
        f"UPDATE {MARKER} SET resource_id = 'another'",
        ("providers", "native", "resource id"),
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_an_unfit_database_is_not_served_with(
    case: str, stand: Stand, postgres_database: Database, warm_broker: WarmBroker
) -> None:
    """004-27, 004-31, 004-101: not migrated, too many rights, or not the resource configured."""
    statement, words = SPOILT[case]
    asyncio.run(postgres_database.fetchval(statement.format(role=postgres_database.runtime_role)))
    warm_broker.serve(settings_for(stand, postgres_database)).refused_with(*words)


def test_a_database_that_was_never_migrated_is_not_served_with(
    stand: Stand, postgres_backend: PostgresBackend, warm_broker: WarmBroker
) -> None:
    """004-101: an ordinary start never migrates."""
    database = asyncio.run(postgres_backend.empty_database())
    warm_broker.serve(settings_for(stand, database)).refused_with("store", "broker migrate")
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('knowledge', 'memory')"
    assert asyncio.run(database.fetchval(schemas)) == 0
    asyncio.run(postgres_backend.drop(database))


def test_a_superuser_is_not_served_as(stand: Stand, warm_broker: WarmBroker) -> None:
    """004-31, 004-101: the role that may do everything is refused whatever was granted."""
    settings = settings_for(stand, stand.database)
    settings["store"]["dsn"] = stand.database.admin_dsn
    warm_broker.serve(settings).refused_with("store", "rights")
    settings = settings_for(stand, stand.database)
    settings["providers"][0]["options"]["dsn"] = stand.database.admin_dsn
    warm_broker.serve(settings).refused_with("providers", "native", "role")
