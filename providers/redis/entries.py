"""What recall finds a head by, as one value that scripts look into without taking it apart.

Five values, each with NUL behind it: the project's tag, the record, the length of its terms, the
bytes of its vector and the vector's model, which is empty where there is none. Then the vector's
numbers as they are, the end of a line, and the terms as ``providers.packing`` packs them: a line
for each, so that the end of a line, the term and a tab stand before its count, and nowhere else.
"""

import re

from providers.entries import RecallEntry
from providers.packing import pack_terms
from providers.rules import is_storable

_NUL = "\0"
_CONTROL = re.compile(r"[\0-\x1f]")


def entry_document(tag: str, record_id: str, entry: RecallEntry | None) -> bytes:
    """Return an entry as it is kept; empty where there is none.

    Raises:
        ValueError: It holds a surrogate.
    """
    if entry is None:
        return b""
    vector = entry.vector
    model, packed = ("", b"") if vector is None else (vector.model, vector.packed)
    begin = (tag, record_id, str(entry.terms.length), str(len(packed)), model, "")
    return _NUL.join(begin).encode() + packed + b"\n" + pack_terms(entry.terms.counts).encode()


def needle(term: str) -> str:
    """Return what stands before the count of a term, and in no entry where none can hold it."""
    plain = is_storable(term) and not _CONTROL.search(term)
    return f"\n{term}\t" if plain else _NUL
