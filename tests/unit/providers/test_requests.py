"""Requests that no adapter could answer cannot be made."""

from datetime import UTC, datetime
from typing import Any

import pytest

from providers.model import ProjectKey
from providers.requests import SearchPosition, SearchRequest

PROJECT = ProjectKey("t1", "p1")
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - a time without a zone is the point


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": 0},
        {"limit": -1},
        {"limit": 101},
        {"importance_min": float("nan")},
        {"importance_max": float("nan")},
        {"updated_from": NAIVE},
        {"updated_before": NAIVE},
        {"after": SearchPosition(NAIVE, "r1")},
    ],
)
def test_a_search_out_of_bounds_is_refused(asked: dict[str, Any]) -> None:
    """004-66: pages of 1 to 100; bounds that are numbers; times with a zone."""
    with pytest.raises(ValueError, match=r"limit|number|zone"):
        SearchRequest(project=PROJECT, agent_id="a1", **asked)


@pytest.mark.parametrize("limit", [1, 50, 100])
def test_a_search_within_bounds_is_made(limit: int) -> None:
    """004-66: 1 and 100 are inside; the importance may be 0 or have no bound at all."""
    made = SearchRequest(
        project=PROJECT,
        agent_id=None,
        importance_min=0.0,
        importance_max=float("inf"),
        updated_from=datetime(2026, 1, 1, tzinfo=UTC),
        limit=limit,
    )
    assert made.limit == limit
