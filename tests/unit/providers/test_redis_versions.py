"""Which server a connection leads to, by what it says of itself.

The replies are faked: there is one release of each server at hand. Those are tried as they are in
``test_redis_negotiation``.
"""

import pytest
from redis.exceptions import ResponseError

from providers.errors import NegotiationRefusedError
from providers.redis.connections import Connection, Link, _seen
from providers.redis.errors import code_of
from providers.redis.scripts import FLAGGED, PLAIN

ALONE = b"# Cluster\r\ncluster_enabled:0\r\n"


def told(redis: str, valkey: str | None = None) -> bytes:
    """Return what ``INFO server`` begins with."""
    lines = ["# Server", f"redis_version:{redis}"]
    lines += [] if valkey is None else ["server_name:valkey", f"valkey_version:{valkey}"]
    return "\r\n".join([*lines, "redis_git_sha1:00000000", ""]).encode()


def seen(server: object, cluster: object = ALONE) -> Link:
    return _seen(Connection(), server, cluster)


@pytest.mark.parametrize(
    "server",
    [
        *map(told, ("5.0.14", "5.9.99", "2.8.24", "0.1.0")),
        told("x"),
        told(""),
        b"# Server\r\n",
        b"",
        b"# Server\r\nnot_redis_version:7.0.0\r\n",
    ],
)
def test_servers_that_are_too_old(server: bytes) -> None:
    """004-38: before 6.0, and one that does not say its version."""
    with pytest.raises(NegotiationRefusedError) as refused:
        seen(server)
    assert refused.value.fact == "version"


@pytest.mark.parametrize(
    "cluster",
    [
        b"# Cluster\r\ncluster_enabled:1\r\n",
        b"# Cluster\r\n",
        b"",
        b"# Cluster\r\nnot_cluster_enabled:0\r\n",
        b"# Cluster\r\ncluster_enabled:01\r\n",
    ],
)
def test_one_of_a_cluster(cluster: bytes) -> None:
    """004-38: cluster mode, and a server that does not say whether it is in it."""
    with pytest.raises(NegotiationRefusedError) as refused:
        seen(told("7.0.15"), cluster)
    assert refused.value.fact == "cluster"


@pytest.mark.parametrize("place", [0, 1])
def test_an_inspection_that_fails(place: int) -> None:
    """004-38, R1: a server that may not be asked is not taken."""
    replies: list[object] = [told("7.0.15"), ALONE]
    replies[place] = ResponseError("NOPERM no")
    with pytest.raises(ResponseError) as refused:
        seen(*replies)
    assert code_of(refused.value) == "NOPERM"


@pytest.mark.parametrize(
    ("redis", "valkey", "is_flagged", "fields_expire", "skips"),
    [
        ("6.0.0", None, False, False, False),
        ("6.2.20", None, False, False, False),
        ("7.0.0", None, True, False, True),
        ("7.3.240", None, True, False, True),
        ("7.4.0", None, True, True, True),
        ("8.0.0", None, True, True, True),
        ("10.0.0", None, True, True, True),
        ("7.2.4", "7.2.9", True, False, True),
        ("7.2.4", "8.1.0", True, False, True),
        ("7.2.4", "9.0.0", True, True, False),
        ("7.2.4", "10.0.1", True, True, False),
    ],
)
def test_what_a_version_can_do(
    redis: str, valkey: str | None, *, is_flagged: bool, fields_expire: bool, skips: bool
) -> None:
    """004-38, 004-39: field TTLs from Redis 7.4 and Valkey 9 on; else the worse is taken."""
    link = seen(told(redis, valkey))
    assert link.scripts is (FLAGGED if is_flagged else PLAIN)
    assert link.tells_rights is is_flagged
    assert link.fields_expire is fields_expire
    assert link.skips_on_loading is skips
    names = {"appendonly", "appendfsync", "no-appendfsync-on-rewrite"}
    assert set(link.settings[2:]) == (names if is_flagged else {"*append*"})


def test_scripts_say_that_they_only_read() -> None:
    """004-41: where the server knows it, it may run those when it has no memory left."""
    writing = {name for name, script in FLAGGED.items() if script.text.startswith(b"#!lua\n")}
    reading = {
        name for name, script in FLAGGED.items() if script.text.startswith(b"#!lua flags=no-writes")
    }
    assert {str(name) for name in writing} == {"commit", "deliver", "index"}
    assert writing | reading == set(FLAGGED) == set(PLAIN)
    assert not any(script.text.startswith(b"#!") for script in PLAIN.values())
