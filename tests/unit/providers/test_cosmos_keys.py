"""Where documents are: other names, other places (G-1, G-2)."""

from itertools import product

import pytest

from providers.cosmos import keys
from providers.model import ProjectKey, ReceiptKey

PARTS = ("a", "a/", "/a", "a/b", "a%2Fb", "a%", "%", "/", "", "a%252Fb", "A", "é")


def test_every_project_has_a_partition_of_its_own() -> None:
    """G-2, 004-48: slashes and percent signs inside tenant and project mean themselves."""
    projects = [ProjectKey(*pair) for pair in product(PARTS, PARTS)]
    assert len({keys.partition_of(each) for each in projects}) == len(projects)
    assert keys.partition_of(ProjectKey("tenant", "project")) == "tenant/project"


def test_no_project_has_the_partition_of_the_marker() -> None:
    partitions = {keys.partition_of(ProjectKey(*pair)) for pair in product(PARTS, PARTS)}
    assert keys.MARKER_PARTITION not in partitions
    assert all("/" in each for each in partitions)


def test_every_name_has_an_id_of_its_own() -> None:
    """G-1: of whatever sort; ids hold no character that the service forbids."""
    names = [*PARTS, "a\n", "a\\b", "a?b", "a#b", "x" * 10_000]
    ids = [
        make(name)
        for make in (
            keys.head_id,
            keys.revision_id,
            keys.key_id,
            keys.counter_id,
            keys.effect_id,
            keys.stream_id,
        )
        for name in names
    ]
    ids += [keys.segment_id(name, number) for name in names for number in (1, 11)]
    ids += [keys.receipt_id(ReceiptKey("f" * 64, name)) for name in names]
    ids += [keys.SEGMENTS, keys.MARKER_ID]
    assert len(set(ids)) == len(ids)
    assert all(len(each) < 256 and not set(each) & set("/\\?#") for each in ids)


def test_actor_and_key_do_not_run_together() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", "")]
    assert len({keys.receipt_id(ReceiptKey(*each)) for each in pairs}) == len(pairs)


def test_nothing_is_kept_under_a_surrogate() -> None:
    with pytest.raises(TypeError):
        keys.head_id("\ud800")
