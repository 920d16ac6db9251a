"""Frozen values that are made quickly are what the class itself makes."""

from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any

import pytest

from providers.conformance import specimens
from providers.making import maker, new_content, new_facet, new_revision
from providers.model import MemoryFacet, OriginTier, ProjectKey
from providers.requests import Loaded, new_loaded

FACET = MemoryFacet(subject="tea", origin_tier=OriginTier.AGENT, corroboration=3)
REVISION = specimens.memory("r1", facet=FACET).current
MADE = [(new_content, REVISION.content), (new_facet, FACET), (new_revision, REVISION)]


def _given(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


@pytest.mark.parametrize(("make", "value"), MADE, ids=["content", "facet", "revision"])
def test_what_is_made_is_the_same(make: Any, value: Any) -> None:
    """Class, fields and hash; it changes as little, and is replaced as well."""
    made = make(**_given(value))
    assert type(made) is type(value)
    assert made == value
    assert hash(made) == hash(value)
    assert repr(made) == repr(value)
    first = fields(value)[0].name
    assert replace(made, **{first: "other"}) == replace(value, **{first: "other"})
    with pytest.raises(FrozenInstanceError):
        setattr(made, first, "other")
    with pytest.raises(FrozenInstanceError):
        delattr(made, first)


def test_defaults_are_those_of_the_class() -> None:
    """What is not given is absent; what is made for each is of each alone."""
    empty = new_loaded()
    assert empty == Loaded()
    assert empty.heads is not new_loaded().heads
    assert new_facet() == MemoryFacet()
    assert new_facet(subject="tea") == MemoryFacet(subject="tea")


@pytest.mark.parametrize("given", [{}, {"unknown": 1}], ids=["missing", "unknown"])
def test_other_arguments_are_refused(given: dict[str, Any]) -> None:
    """As the class refuses them."""
    with pytest.raises(TypeError):
        new_content(**given)


def test_a_class_that_does_more_is_refused() -> None:
    """Its own checks would not run, and without slots there is nothing to set."""

    @dataclass(frozen=True, slots=True)
    class Checked:
        name: str

        def __post_init__(self) -> None:
            """Check."""

    @dataclass(frozen=True)
    class Open:
        name: str

    for kind in (Checked, Open):
        with pytest.raises(TypeError, match="more than take its fields"):
            maker(kind)


def test_a_class_takes_its_fields_by_place() -> None:
    """Its maker takes them by name alone."""
    assert maker(ProjectKey)(tenant_id="t", project_id="p") == ProjectKey("t", "p")
