"""The service config that clients are given says what the server does."""

import json
import re
from importlib import resources
from typing import Any

from broker.server.methods import METHODS

CONFIG: dict[str, Any] = json.loads(
    resources.files("broker").joinpath("client_service_config.json").read_text(encoding="utf-8")
)
DURATION = re.compile(r"\d+(\.\d{1,9})?s")


def test_every_method_that_is_served_has_its_deadline() -> None:
    """A method that came or went, or whose deadline changed, changes the file too."""
    given = [
        (f"/{name['service']}/{name['method']}", each["timeout"])
        for each in CONFIG["methodConfig"]
        for name in each["name"]
    ]
    assert sorted(given) == sorted(
        (method, f"{policy.deadline_s:g}s") for method, policy in METHODS.items()
    )


def test_only_unavailable_is_tried_again_and_at_most_four_times_in_all() -> None:
    for each in CONFIG["methodConfig"]:
        policy = dict(each["retryPolicy"])
        assert policy.pop("retryableStatusCodes") == ["UNAVAILABLE"]
        assert policy.pop("maxAttempts") == 4
        assert DURATION.fullmatch(policy.pop("initialBackoff"))
        assert DURATION.fullmatch(policy.pop("maxBackoff"))
        assert policy == {"backoffMultiplier": 2}


def test_connections_are_used_in_turn_and_retries_are_throttled() -> None:
    assert CONFIG["loadBalancingConfig"] == [{"round_robin": {}}]
    assert CONFIG["retryThrottling"] == {"maxTokens": 100, "tokenRatio": 0.1}
    assert set(CONFIG) == {"loadBalancingConfig", "methodConfig", "retryThrottling"}
