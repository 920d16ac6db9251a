"""Settings of the listening side that must not be served with."""

from pathlib import Path
from typing import Any

import pytest
import trustme
from pydantic import ValidationError

from broker.config import ServerSettings, Settings
from broker.safety import UnsafeConfigurationError, verify

REST: dict[str, Any] = {
    "issuers": [
        {
            "issuer": "https://issuer.test",
            "audience": "knowledge",
            "algorithms": ["ES256"],
            "jwks_file": "keys.json",
        }
    ],
    "owner": {"address": "localhost:1"},
    "events": {"address": "localhost:1", "audience": "events"},
    "store": {"dsn": "postgresql://role@127.0.0.1/name"},
    "providers": [
        {
            "provider_id": "native",
            "adapter": "postgres.native-memory",
            "adapter_version": "1.0.0",
            "options_schema_version": 1,
            "options_revision": "options-v1",
            "hosting": "platform",
            "advertised_capabilities": ["memory.records.read"],
        }
    ],
}


def verified(**server: Any) -> None:
    """Verify settings with this listening side."""
    verify(Settings(server=ServerSettings(**server), **REST), development=False)


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"workers": 4, "metrics_listen": "127.0.0.1:9000", "health_listen": "0.0.0.0:9004"},
        {"workers": 4, "metrics_listen": "127.0.0.1:0", "health_listen": "[::]:0"},
        {"workers": 1, "metrics_listen": "127.0.0.1:65535"},
    ],
)
def test_ports_that_do_not_meet_are_taken(server: dict[str, Any]) -> None:
    verified(**server)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"health_listen": "127.0.0.1:7400"}, "must not meet"),
        ({"metrics_listen": "127.0.0.1:7400"}, "must not meet"),
        ({"metrics_listen": "127.0.0.1:7399", "workers": 2}, "must not meet"),
        (
            {
                "metrics_listen": "127.0.0.1:9000",
                "health_listen": "0.0.0.0:9003",
                "workers": 4,
            },
            "must not meet",
        ),
        ({"metrics_listen": "127.0.0.1:65535", "workers": 2}, "too few ports"),
        ({"health_listen": "7402"}, "server.health_listen must be host:port"),
        ({"health_listen": "127.0.0.1:"}, "server.health_listen must be host:port"),
        ({"metrics_listen": "127.0.0.1:70000"}, "server.metrics_listen must be host:port"),
        ({"client_ca_file": "ca.pem"}, "server.client_ca_file needs a certificate"),
        ({"tls_key_file": "key.pem"}, "go together"),
    ],
)
def test_the_rest_is_refused(server: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsafeConfigurationError, match=said):
        verified(**server)


@pytest.mark.parametrize(
    "server",
    [
        {"workers": 0},
        {"workers": 65},
        {"max_connection_age_seconds": 0.5},
        {"max_connection_age_seconds": 86_401},
    ],
)
def test_numbers_have_bounds(server: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        verified(**server)


def test_each_file_is_named_by_its_setting(tmp_path: Path) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("broker.test")
    files = {name: tmp_path / f"{name}.pem" for name in ("key", "chain", "ca")}
    leaf.private_key_pem.write_to_path(str(files["key"]))
    files["chain"].write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    authority.cert_pem.write_to_path(str(files["ca"]))
    server = {
        "listen": "0.0.0.0:7400",
        "tls_key_file": files["key"],
        "tls_certificate_file": files["chain"],
        "client_ca_file": files["ca"],
    }
    verified(**server)
    for setting in ("tls_key_file", "tls_certificate_file", "client_ca_file"):
        with pytest.raises(UnsafeConfigurationError, match=rf"^server\.{setting}: .*absent\.pem"):
            verified(**server | {setting: tmp_path / "absent.pem"})
