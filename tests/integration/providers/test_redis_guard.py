"""What every script demands of the server before it reads or writes anything, demand by demand.

The script is the adapter's and runs on a real server; what ``INFO`` says is faked where it reaches
the script, since no server at hand can be made to say all of it. What one can be made to say is
tried without a fake in ``test_redis_negotiation`` and ``test_redis_servers``.
"""

import pytest

from broker.devstack.redis import Flavour
from providers.redis.keys import base_key, marker_key, marker_value, writes_key
from providers.redis.scripts import FLAGGED, PLAIN, Script
from tests.fixtures.redis import RESOURCE, RedisBackend

Edit = tuple[str, str, str]

# In place of the server's own table: a reply of INFO in which one text is put for another.
FAKE = b"""
local real = redis
local redis = {call = function(name, section, ...)
    local reply = real.call(name, section, ...)
    for i = 6, #ARGV, 3 do
        if name == 'INFO' and section == ARGV[i] then
            local first, last = string.find(reply, ARGV[i + 1], 1, true)
            assert(first, 'INFO does not say ' .. ARGV[i + 1])
            reply = string.sub(reply, 1, first - 1) .. ARGV[i + 2] .. string.sub(reply, last + 1)
        end
    end
    return reply
end}
"""
FIT = [b"ok", 0]
"""And as many writes of the resource."""
GROWN = 64 * 1024 * 1024
REWRITES = {
    "under way": ("persistence", "aof_rewrite_in_progress:0", "aof_rewrite_in_progress:1"),
    "to come": ("persistence", "aof_rewrite_scheduled:0", "aof_rewrite_scheduled:1"),
    "not told": ("persistence", "aof_rewrite_in_progress:0\r\n", ""),
    "not told to come": ("persistence", "aof_rewrite_scheduled:0\r\n", ""),
}
FAULTS: dict[str, tuple[str, list[Edit]]] = {
    "a replica": ("replica", [("replication", "role:master", "role:slave")]),
    "no role": ("replica", [("replication", "role:master\r\n", "")]),
    "one replica": ("replicas", [("replication", "connected_slaves:0", "connected_slaves:1")]),
    "many replicas": ("replicas", [("replication", "connected_slaves:0", "connected_slaves:10")]),
    "no count of replicas": ("replicas", [("replication", "connected_slaves:0\r\n", "")]),
    "no append-only file": ("aof_off", [("persistence", "aof_enabled:1", "aof_enabled:0")]),
    "no word of it": ("aof_off", [("persistence", "aof_enabled:1\r\n", "")]),
    "the word in another section": (
        "aof_off",
        [
            ("persistence", "aof_enabled:1\r\n", ""),
            *(
                (section, "\r\n", "\r\naof_enabled:1\r\n")
                for section in ("replication", "memory", "keyspace")
            ),
        ],
    ),
    "a failed write": (
        "aof_failed",
        [("persistence", "aof_last_write_status:ok", "aof_last_write_status:err")],
    ),
    "no word of writes": ("aof_failed", [("persistence", "aof_last_write_status:ok\r\n", "")]),
    **{
        policy: (
            "eviction",
            [("memory", "maxmemory_policy:noeviction", f"maxmemory_policy:{policy}")],
        )
        for policy in ("allkeys-lru", "noeviction2", "")
    },
    "evicted keys": ("evicted", [("stats", "evicted_keys:0", "evicted_keys:1")]),
    "no count of evicted keys": ("evicted", [("stats", "evicted_keys:0\r\n", "")]),
    "no policy": ("eviction", [("memory", "maxmemory_policy:noeviction\r\n", "")]),
    "a key that expires": ("expiring_key", [("keyspace", ",expires=0,", ",expires=1,")]),
    "many keys that expire": ("expiring_key", [("keyspace", ",expires=0,", ",expires=01,")]),
    "no count of those": ("expiring_key", [("keyspace", "expires=0,", "")]),
    "another database": ("expiring_key", [("keyspace", "\ndb0:", "\ndb10:")]),
}


@pytest.fixture
def backend(redis_backend: RedisBackend) -> RedisBackend:
    """A resource on a server whose append-only file was rewritten before."""
    redis_backend.server.execute("BGREWRITEAOF")
    redis_backend.settle()
    return redis_backend


def asked(backend: RedisBackend, *edits: Edit, seen: str = "", script: bytes = b"") -> list[bytes]:
    """Run the script that asks for nothing, with these edits of what the server says."""
    head, line, rest = (script or FLAGGED[Script.READY].text).partition(b"\n")
    given = (marker_value(RESOURCE), "0", seen, "tag", "null")
    prefix = backend.prefix
    keys = (marker_key(prefix), base_key(prefix, ""), writes_key(prefix))
    flat = [word for edit in edits for word in edit]
    text = head + line + FAKE + rest
    answer: list[bytes] = backend.server.execute("EVAL", text, len(keys), *keys, *given, *flat)
    return answer


def test_a_fit_server(backend: RedisBackend) -> None:
    """004-38: without an edit nothing is refused; so the fake changes nothing by itself."""
    assert asked(backend) == FIT
    assert asked(backend, seen="doubted") == FIT


@pytest.mark.parametrize("name", FAULTS)
def test_each_demand(backend: RedisBackend, name: str) -> None:
    """004-38, 004-39, R1: each is made, alone, and also where the server does not tell."""
    fault, edits = FAULTS[name]
    assert asked(backend, *edits) == [b"unfit", [fault.encode()]]


def test_all_that_is_wrong_is_told(backend: RedisBackend) -> None:
    edits = [FAULTS[name][1][0] for name in ("a replica", "allkeys-lru", "a key that expires")]
    assert asked(backend, *edits) == [b"unfit", [b"replica", b"eviction", b"expiring_key"]]


def sizes(backend: RedisBackend, size: int, base: int) -> list[Edit]:
    """Return the edits that make the append-only file so large, and its base."""
    told = backend.server.execute("INFO", "persistence")
    wanted = {"aof_current_size": size, "aof_base_size": base}
    return [
        ("persistence", f"{name}:{told[name]}\r", f"{name}:{number}\r")
        for name, number in wanted.items()
    ]


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_is_refused_without_an_occasion(backend: RedisBackend, name: str) -> None:
    """004-38: an occasion is a file of twice its base and 64 MiB that was not doubted before."""
    rewrite = REWRITES[name]
    for base in (GROWN // 2, 0):
        grown = sizes(backend, GROWN, base)
        assert asked(backend, rewrite, *grown) == FIT
        assert asked(backend, rewrite, *grown, seen=" doubted") == [b"unfit", [b"aof_begins"]]
    for size, base in ((GROWN - 1, 1), (GROWN - 1, 0), (GROWN, GROWN // 2 + 1), (0, 0)):
        told = asked(backend, rewrite, *sizes(backend, size, base))
        assert told == [b"unfit", [b"aof_begins"]]
        assert asked(backend, *sizes(backend, size, base)) == FIT


COUNTERS = {
    "Valkey": ",keys_with_volatile_items=",
    "Redis from 7.4 on": ",subexpiry=",
}


@pytest.mark.parametrize("name", COUNTERS)
def test_fields_that_expire(backend: RedisBackend, name: str) -> None:
    """004-39: where the server counts them, there must be none, in whichever way it counts."""
    told = backend.server.execute("INFO", "keyspace")["db0"]
    own = f",keys_with_volatile_items={told.get('keys_with_volatile_items')}"
    gone = [("keyspace", own, "")] if backend.server.flavour is Flavour.VALKEY else []
    counts = {
        number: ("keyspace", ",expires=0,", f",expires=0{COUNTERS[name]}{number},")
        for number in ("0", "1", "10")
    }
    for seen in ("", "fields"):
        assert asked(backend, *gone, counts["0"], seen=seen) == FIT
        for number in ("1", "10"):
            expected = [b"unfit", [b"expiring_field"]]
            assert asked(backend, *gone, counts[number], seen=seen) == expected
    assert asked(backend, *gone) == FIT
    assert asked(backend, *gone, seen="fields") == [b"unfit", [b"expiring_field"]]


@pytest.mark.parametrize("script", [each for each in Script if each is not Script.READY])
def test_every_script_begins_so(backend: RedisBackend, script: Script) -> None:
    """004-45: whichever script it is, the server is looked at before the request is."""
    fault, edits = FAULTS["a failed write"]
    for form in (FLAGGED, PLAIN):
        told = asked(backend, *edits, script=b"\n" * (form is PLAIN) + form[script].text)
        assert told == [b"unfit", [fault.encode()]]
    backend.server.execute("SET", marker_key(backend.prefix), "another")
    assert asked(backend, script=FLAGGED[script].text) == [b"marker", b"another"]
    backend.server.execute("DEL", marker_key(backend.prefix))
    assert asked(backend, script=FLAGGED[script].text) == [b"marker", None]
