"""The keys by which equal memories meet: one for what is said, one for what it is about.

A key holds a hash, so that it tells nothing, has one length, and no name can reach into another.
"""

import hashlib
from typing import Final

import orjson

from providers.folding import folded
from providers.model import BeliefType, MemoryFacet, Revision

_CONTENT: Final = "content/"
_BELIEF: Final = "belief/"


def normalised(text: str) -> str:
    """Return what texts that say the same have in common.

    Case and composition are folded as searches fold them; white space is one space, and none at the
    ends.
    """
    return " ".join(folded(text).split())


def content_key(agent_id: str, namespace: str | None, text: str) -> str:
    """Return the key of a text of an agent, in a namespace or in none."""
    return _CONTENT + _digest(agent_id, namespace or "", normalised(text))


def belief_key(agent_id: str, namespace: str | None, subject: str, belief_type: BeliefType) -> str:
    """Return the key of what an agent believes about a subject, in a namespace or in none."""
    return _BELIEF + _digest(agent_id, namespace or "", normalised(subject), belief_type)


def content_key_of(revision: Revision) -> str:
    """Return the key of what a revision says."""
    facet = revision.facet or MemoryFacet()
    return content_key(revision.agent_id, facet.namespace, revision.content.content)


def belief_key_of(revision: Revision) -> str | None:
    """Return the key of what a revision states a belief about; ``None``: it states none (R21)."""
    facet = revision.facet
    if facet is None or facet.subject is None or facet.belief_type is None:
        return None
    return belief_key(revision.agent_id, facet.namespace, facet.subject, facet.belief_type)


def _digest(*parts: str) -> str:
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()
