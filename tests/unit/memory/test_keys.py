"""Equal texts have one key, and nothing else has it."""

import hashlib
import json
from typing import Any

import pytest

from broker.memory.keys import (
    belief_key,
    belief_key_of,
    content_key,
    content_key_of,
    normalised,
)
from providers.conformance import specimens
from providers.model import BeliefType, MemoryFacet

SAME = (
    ("The sky is blue", "the  SKY\tis\nblue "),
    ("Caf\u00e9", "CAFE\u0301"),
    ("Stra\u00dfe", "STRASSE"),
    ("a\u00a0b", "a\u2003b"),
    ("", " \n"),
)
OTHER = (
    ("The sky is blue", "The sky is blue."),
    ("cafe", "caf\u00e9"),
    ("ab", "a b"),
    ("a\u200bb", "ab"),
    ("\uff41", "a"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one: str, other: str) -> None:
    """Case, composition and white space do not count."""
    assert normalised(one) == normalised(other)
    assert content_key("agent", None, one) == content_key("agent", None, other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_not_the_same(one: str, other: str) -> None:
    """Accents, marks, forms and what does not show do count: no text is lost to another."""
    assert content_key("agent", None, one) != content_key("agent", None, other)


def test_what_a_key_is() -> None:
    """A key names its sort and holds a hash over a list, so that no name reaches into another."""
    listed = json.dumps(["agent", "space", "the sky"], separators=(",", ":")).encode()
    key = content_key("agent", "space", " The Sky")
    assert key == "content/" + hashlib.sha256(listed).hexdigest()
    listed = json.dumps(["agent", "", "the sky", "fact"], separators=(",", ":")).encode()
    key = belief_key("agent", None, "The  Sky", BeliefType.FACT)
    assert key == "belief/" + hashlib.sha256(listed).hexdigest()
    assert content_key("a", "b", "c") != content_key("a", None, "b c")
    assert content_key("a", "", "x") == content_key("a", None, "x")
    assert content_key("a", "n", "x") != content_key("b", "n", "x")
    assert content_key("a", "n", "x") != content_key("a", "m", "x")
    assert belief_key("a", "n", "x", BeliefType.FACT) != belief_key(
        "a", "n", "x", BeliefType.PREFERENCE
    )


def test_the_keys_of_a_revision() -> None:
    """R21: a belief has a key only where subject and type are both given."""
    facet: dict[str, Any] = {"namespace": "n", "subject": "Sky", "belief_type": BeliefType.FACT}
    memory = specimens.memory("m", facet=MemoryFacet(**facet)).current
    agent, text = memory.agent_id, memory.content.content
    assert content_key_of(memory) == content_key(agent, "n", text)
    assert belief_key_of(memory) == belief_key(agent, "n", "sky", BeliefType.FACT)
    bare = specimens.memory("m", facet=None).current
    assert content_key_of(bare) == content_key(agent, None, text)
    assert belief_key_of(bare) is None
    for missing in ("subject", "belief_type"):
        half = specimens.memory("m", facet=MemoryFacet(**facet | {missing: None})).current
        assert belief_key_of(half) is None
