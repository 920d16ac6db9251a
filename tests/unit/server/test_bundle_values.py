"""How many values metadata hold, found out at a price that does not depend on them (004-83)."""

from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2
from broker.domain.errors import BundleTooLargeError
from broker.domain.fields import TAGS_MAX
from broker.server import bundle_values
from broker.server.bundle_values import count_values
from broker.server.bundles import MessageBundle
from broker.services.transfers import _canonical
from broker.transfer.bundle import VALUES_MAX
from tests.fixtures.bundles import bundle, history

WHOLE: Final[dict[str, Any]] = {"a": [[], {}, 1, {"b": None, "c": [[["x"]]]}], "d": "e"}
HELD: Final = 11


def facet(value: dict[str, Any]) -> record_pb2.MemoryFacet:
    """Return a facet with metadata."""
    made = record_pb2.MemoryFacet()
    made.metadata.update(value)
    return made


def test_everything_counts() -> None:
    """004-83: keys and items, at every depth."""
    made = facet(WHOLE).metadata
    assert count_values(made, 100) == HELD
    assert count_values(made, HELD) == HELD
    assert count_values(made, HELD - 1) > HELD - 1
    assert count_values(facet({}).metadata, 0) == 0


def test_no_more_is_looked_at_than_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """004-83: the costs end where the limit is."""
    looked = 0
    inside = bundle_values._inside

    def counted(held: Any) -> Any:
        nonlocal looked
        looked += len(list(bundle_values._values(held)))
        return inside(held)

    monkeypatch.setattr(bundle_values, "_inside", counted)
    assert count_values(facet({"a": [[[]] * 10] * 1_000}).metadata, 1_500) > 1_500
    assert 1_000 < looked <= 1_500


def test_heads_and_revisions_count() -> None:
    """004-83: each is written and read for itself; oversized ones are not."""
    made = history("p", "m", 3, facet=facet(WHOLE))
    source = MessageBundle(bundle("p", made, history("p", "n", 2)), present=True)
    assert source.values(VALUES_MAX) == 4 * HELD
    made.record.facet.metadata["long"] = "x" * 40_000
    source = MessageBundle(bundle("p", made), present=True)
    assert source.values(VALUES_MAX) == 3 * HELD


@pytest.mark.parametrize("over", [0, 1])
def test_the_limit(over: int) -> None:
    """004-83: 20,000 in all; one more is refused before anything is written as JSON."""
    each = facet({"a": [[]] * 1_999})
    made = bundle("p", history("p", "m", 9, facet=each))
    if over:
        made.records[0].record.facet.metadata["b"] = 1
    source = MessageBundle(made, present=True)
    if not over:
        assert _canonical(source)
        return
    with pytest.raises(BundleTooLargeError) as refused:
        _canonical(source)
    assert refused.value.metadata == {"limit": "values", "max": "20000"}


def test_tags_that_pass_their_limit_are_not_taken_apart() -> None:
    """004-83, 004-50: a tag takes two bytes; the fault is theirs."""
    made = bundle("p", history("p", "m", 1, tags=[""] * (TAGS_MAX + 1)))
    assert MessageBundle(made, present=True).canonical() is None
