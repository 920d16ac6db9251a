"""Starts over Redis that must not be: one readable line for the operator, and an exit code."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.own_broker import Settings, WarmBroker, settings_for
from tests.fixtures.postgres import Database
from tests.fixtures.redis_memory import RedisMemory
from tests.fixtures.redis_spoilt import EVERY

PASSWORD: Final = "hush-hush"


@pytest.fixture
def memory(redis_stand: Stand, postgres_database: Database) -> RedisMemory:
    """A resource of the test's own."""
    made = redis_stand.memory.beside(postgres_database)
    assert isinstance(made, RedisMemory)
    return made


@pytest.fixture
def settings(redis_stand: Stand, postgres_database: Database, memory: RedisMemory) -> Settings:
    """Settings that can be served with."""
    return settings_for(redis_stand, postgres_database, memory)


def put(**options: Any) -> Callable[[dict[str, Any]], None]:
    """Change options; ``None`` takes one away."""

    def change(given: dict[str, Any]) -> None:
        given |= options
        for name, value in options.items():
            if value is None:
                del given[name]

    return change


OPTIONS: Final[dict[str, tuple[Callable[[dict[str, Any]], None], tuple[str, ...]]]] = {
    "in_plaintext": (put(endpoint="redis://localhost:6379"), ("endpoint", "rediss://host:port")),
    "a_password_in_the_address": (
        put(endpoint=f"rediss://broker:{PASSWORD}@localhost:6379"),
        ("endpoint",),
    ),
    "a_user_without_a_password": (put(password=None), ("username", "password")),
    "a_password_alone": (put(username=None, password=PASSWORD), ("username", "password")),
    "an_option_of_another_adapter": (put(lock_ms=50), ("lock_ms",)),
    "authorities_that_are_absent": (put(ca_file="absent.pem"), ("ca_file", "absent.pem")),
    "a_wrong_password": (put(password=PASSWORD), ("password",)),
    "a_prefix_without_a_marker": (put(key_prefix="stand:nothing"), ("marker",)),
    "a_prefix_of_others": (put(key_prefix="elsewhere"), ("right",)),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_are_not_served_with(
    case: str, settings: Settings, warm_broker: WarmBroker
) -> None:
    """004-37, 004-38, 004-101: the provider is named, and what is wrong; no secret is."""
    change, words = OPTIONS[case]
    options = settings["providers"][0]["options"]
    secret = options["password"]
    change(options)
    refused = warm_broker.serve(settings)
    refused.refused_with("providers: redis: ", *words)
    assert PASSWORD not in refused.said
    assert secret not in refused.said


WORDS: Final = {
    "not_synced_always": "appendfsync must be always",
    "not_synced_on_rewrite": "no-appendfsync-on-rewrite must be no",
    "evicts": "maxmemory-policy",
    "is_a_replica": "replica",
    "something_expires": "expires",
    "rights_are_missing": "right",
    "marker_of_another_resource": "resource id",
    "marker_of_another_generation": "generation",
}


@pytest.mark.parametrize("case", WORDS)
def test_an_unfit_server_is_not_served_with(
    case: str, settings: Settings, memory: RedisMemory, warm_broker: WarmBroker
) -> None:
    """004-38, 004-39, 004-101: one that could lose what it acknowledged, or another resource."""
    with EVERY[case](memory):
        warm_broker.serve(settings).refused_with("providers: redis: ", WORDS[case])


def test_every_way_to_be_unfit_is_refused() -> None:
    """004-38, 004-39: none of them is left out above."""
    assert WORDS.keys() == EVERY.keys()
