"""Requests that no adapter could answer cannot be made."""

from datetime import UTC, datetime
from typing import Any

import pytest

from providers.deliveries import Acknowledgement, AcquireRequest, PendingEffectsRequest
from providers.exports import ExportRequest, KeyQuery
from providers.model import ProjectKey
from providers.requests import CandidatesRequest, RevisionsRequest, SearchPosition, SearchRequest

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
        {"bytes_max": 0},
        {"bytes_max": 1, "brief": True},
    ],
)
def test_a_search_out_of_bounds_is_refused(asked: dict[str, Any]) -> None:
    """004-66: pages of 1 to 100; bounds that are numbers; times with a zone."""
    with pytest.raises(ValueError, match=r"limit|number|zone|bytes_max"):
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


@pytest.mark.parametrize(
    "asked",
    [{"limit": 0}, {"limit": -1}, {"limit": 10_002}, {"bytes_max": 0}, {"bytes_max": 2**24 + 1}],
)
def test_candidates_out_of_bounds_are_refused(asked: dict[str, Any]) -> None:
    """004-89, 004-90: one more than 10,000 of them, and 16 MiB, at most."""
    with pytest.raises(ValueError, match=r"limit is 1-10001|bytes_max is 1-16777216"):
        CandidatesRequest(project=PROJECT, agent_id="a", run_id="r", **{"limit": 1, **asked})


@pytest.mark.parametrize("limit", [1, 10_001])
def test_candidates_within_bounds_are_asked_for(limit: int) -> None:
    """004-89, 004-90: both ends are inside, and 16 MiB is what is meant without a bound."""
    made = CandidatesRequest(project=PROJECT, agent_id="a", run_id="r", limit=limit)
    assert (made.limit, made.bytes_max) == (limit, 2**24)


@pytest.mark.parametrize("asked", [{"bytes_max": 0}, {"bytes_max": 1, "brief": True}])
def test_a_page_of_no_bytes_is_refused(asked: dict[str, Any]) -> None:
    """004-68: a bound lets something through, and a brief page has none."""
    with pytest.raises(ValueError, match="bytes_max"):
        RevisionsRequest(
            project=PROJECT, agent_id="a1", record_id="r1", before=None, limit=1, **asked
        )


@pytest.mark.parametrize("lease_ms", [0, -1, 3_600_001])
def test_a_lease_of_no_time_or_too_much_is_refused(lease_ms: int) -> None:
    """004-74: from 1 ms to one hour."""
    with pytest.raises(ValueError, match="lease_ms"):
        AcquireRequest(project=PROJECT, run_id="r", receipt_id="e", lease_ms=lease_ms)


@pytest.mark.parametrize("lease_ms", [1, 30_000, 3_600_000])
def test_a_lease_within_bounds_is_asked_for(lease_ms: int) -> None:
    """004-74: both ends are inside."""
    made = AcquireRequest(project=PROJECT, run_id="r", receipt_id="e", lease_ms=lease_ms)
    assert made.lease_ms == lease_ms


@pytest.mark.parametrize(
    ("fact_id", "sequence"),
    [("", 1), ("f" * 257, 1), ("f\0", 1), ("f\ud800", 1), ("f\n", 1), ("f", 0), ("f", 2**63)],
)
def test_what_acknowledges_nothing_is_refused(fact_id: str, sequence: int) -> None:
    """004-77: a fact has an id, and its sequence counts from 1."""
    with pytest.raises(ValueError, match=r"fact_id|sequence"):
        Acknowledgement(fact_id, sequence)


@pytest.mark.parametrize(
    ("fact_id", "sequence"), [("f", 1), ("f" * 256, 2**63 - 1), ("\u00fc 1", 7)]
)
def test_an_acknowledgement_is_made(fact_id: str, sequence: int) -> None:
    """004-77: as large as the store can hold."""
    assert Acknowledgement(fact_id, sequence).sequence == sequence


@pytest.mark.parametrize(("after", "limit"), [(0, 0), (0, 101), (-1, 1)])
def test_a_page_of_effects_out_of_bounds_is_refused(after: int, limit: int) -> None:
    """004-75: pages of 1 to 100, after a sequence or from the beginning."""
    with pytest.raises(ValueError, match=r"limit|after_sequence"):
        PendingEffectsRequest(project=PROJECT, run_id="r", after_sequence=after, limit=limit)


@pytest.mark.parametrize(
    "asked",
    [
        {"records_max": 0},
        {"revisions_max": 0},
        {"bytes_max": -1},
        {"record_ids": ("r",) * 1_001},
    ],
)
def test_an_export_out_of_bounds_is_refused(asked: dict[str, Any]) -> None:
    """004-83: every limit lets something through, and names have an end."""
    with pytest.raises(ValueError, match=r"limit|record_ids"):
        ExportRequest(project=PROJECT, agent_id="a1", **asked)


def test_a_thousand_keys_can_be_looked_up_and_no_more() -> None:
    """004-87: as many as an import may have to ask for."""
    assert len(KeyQuery(project=PROJECT, keys=("k",) * 1_000).keys) == 1_000
    with pytest.raises(ValueError, match="keys"):
        KeyQuery(project=PROJECT, keys=("k",) * 1_001)
