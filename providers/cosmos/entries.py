"""What recall finds a head by, as fields of the head's own document.

So head and entry are replaced by one operation, and are of one moment. A head without an entry has
none of these fields; one without a vector lacks the last two.
"""

import base64
from typing import Any

from providers.cosmos.rows import pack, unpack
from providers.documents import DAMAGE
from providers.entries import RecallEntry, Vector
from providers.errors import StoredDataInvalidError
from providers.packing import pack_terms

Document = dict[str, Any]

NAMES = ("termsLength", "terms", "model", "vector")
COLUMNS = ", ".join(f"c.{name}" for name in NAMES)
WORDS = "c.termsLength, c.terms"
VECTOR = "c.model, c.vector"
LENGTH = "c.termsLength"


def written(entry: RecallEntry | None) -> Document:
    """Return the fields of an entry; of none where there is none."""
    if entry is None:
        return {}
    fields: Document = {
        "termsLength": entry.terms.length,
        "terms": pack(pack_terms(entry.terms.counts)),
    }
    if entry.vector is not None:
        fields["model"] = entry.vector.model
        fields["vector"] = base64.b64encode(entry.vector.packed).decode()
    return fields


def carried(before: Document) -> Document:
    """Return the fields of the entry that a head has, as they were read."""
    return {name: before[name] for name in NAMES if name in before}


def length_of(found: Document) -> int | None:
    """Return the length of a head's entry; ``None``: it has none.

    Raises:
        StoredDataInvalidError: It is none. Not retryable.
    """
    if "termsLength" not in found:
        return None
    length = found["termsLength"]
    if type(length) is not int or length < 0:
        raise StoredDataInvalidError("a stored entry is damaged")
    return length


def terms_of(found: Document) -> str:
    """Return a head's terms as ``packing`` packs them; see ``length_of``."""
    terms = unpack(found.get("terms"))
    if type(terms) is not str:
        raise StoredDataInvalidError("a stored entry is damaged")
    return terms


def vector_of(found: Document, wanted: Vector | None) -> bytes | None:
    """Return the numbers of a head's vector, where they can be compared with these (Q-6).

    Raises:
        StoredDataInvalidError: They are none. Not retryable.
    """
    if wanted is None or found.get("model") != wanted.model:
        return None
    try:
        numbers = base64.b64decode(found["vector"], validate=True)
    except DAMAGE:
        raise StoredDataInvalidError("a stored entry is damaged") from None
    return numbers if len(numbers) == len(wanted.packed) else None
