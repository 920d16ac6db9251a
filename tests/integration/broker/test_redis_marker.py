"""What an operator is told by ``broker init-resource --adapter redis.memory``."""

from urllib.parse import quote

from providers.redis.keys import marker_key
from tests.fixtures.own_broker import WarmBroker
from tests.fixtures.redis import RedisBackend

DSN = "BROKER_MIGRATION_DSN"
INIT = ("init-resource", "--adapter", "redis.memory", "--resource-id")
PREFIX = "operated:by-hand"


def address(backend: RedisBackend, *, port: int | None = None, password: str = "") -> str:
    """Return what the superuser reaches the server by."""
    server = backend.server
    who = f"{server.superuser}:{quote(password or server.superuser_password, safe='')}"
    place = f"localhost:{port or server.port}"
    return f"rediss://{who}@{place}/0?ca_file={server.ca_file}&key_prefix={PREFIX}"


def test_a_marker_is_written_once(redis_backend: RedisBackend, warm_broker: WarmBroker) -> None:
    """004-27: the operator names the resource; what is there is never changed."""
    given = {DSN: address(redis_backend)}
    mine, other = ((*INIT, name, "--generation", "1") for name in ("mine", "other"))
    done = warm_broker.run(*mine, **given)
    assert (done.code, done.said) == (0, "broker: the marker is written: mine, generation 1\n")
    written = redis_backend.server.execute("GET", marker_key(PREFIX))
    warm_broker.run(*mine, **given).refused_with("has this marker already")
    again = warm_broker.run(*mine, "--if-absent", **given)
    assert (again.code, again.said) == (
        0,
        "broker: the marker is there already: mine, generation 1\n",
    )
    warm_broker.run(*other, "--if-absent", **given).refused_with("another marker")
    assert redis_backend.server.execute("GET", marker_key(PREFIX)) == written


def test_what_cannot_be_carried_out_is_told_without_the_password(
    redis_backend: RedisBackend, warm_broker: WarmBroker
) -> None:
    """004-101: one line, and nothing is written."""
    secret = "hush-hush"
    plain = address(redis_backend, password=secret).replace("rediss://", "redis://")
    native = ("init-resource", "--resource-id", "mine", "--generation", "1")
    mine = (*INIT, "mine", "--generation", "1")
    cases = [
        (mine, address(redis_backend, port=1, password=secret), ("the store at localhost:1",)),
        (mine, address(redis_backend, password=secret), ("user and password",)),
        (mine, plain, ("rediss://",)),
        (mine, f"postgresql://role:{secret}@127.0.0.1:1/name", ("rediss://",)),
        (native, address(redis_backend, password=secret), ("postgresql://",)),
    ]
    for arguments, given, words in cases:
        refused = warm_broker.run(*arguments, **{DSN: given})
        refused.refused_with(*words)
        assert secret not in refused.said
    assert redis_backend.server.execute("EXISTS", marker_key(PREFIX)) == 0


def test_an_address_of_postgresql_is_judged_before_it_is_used(warm_broker: WarmBroker) -> None:
    """004-101: a password does not travel in the clear."""
    far = "postgresql://role:hush-hush@db.example/name"
    refused = warm_broker.run(
        "init-resource", "--resource-id", "mine", "--generation", "1", **{DSN: far}
    )
    refused.refused_with("sslmode=verify-full")
    assert "hush-hush" not in refused.said
