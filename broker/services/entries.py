"""Makes what recall finds memories by: term vectors always, and vectors where they are to be had."""

from providers.model import Content, MemoryFacet

Told = tuple[Content, MemoryFacet | None]
"""What a memory says: all that an entry is made of."""


class Entries:
    """Makes entries. No outage of a model is an error: the entry lacks its vector then (001-40)."""
