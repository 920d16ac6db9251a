"""What a search takes for the same text: one rule, kept in Python so that no store's own differs.

Case is folded as Unicode folds it in full, in no particular language: a sharp s is ``ss``, a
ligature its letters, a final sigma a sigma; a dotted capital I is an ``i`` with a dot above, and a
dotless i a letter of its own. Composed and decomposed spellings of a character are one. Nothing
else is: an accent, a full-width form, a superscript and a space stay what they are. Text is
compared as composed (NFC), so that ``e`` does not stand in an ``e`` with an accent, however that
was spelt.
"""

from unicodedata import normalize

from providers.model import Content

# En quad and em quad: NFC replaces both, so that no folded text holds them.
_FIELD = "\u2000"
_TAG = "\u2001"


def folded(text: str) -> str:
    """Return the text that stands for all that differ from it in case or composition only."""
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFD", text).casefold())


def search_text(content: Content) -> str:
    """Return all that a search looks through, folded: type, title, content and each tag.

    No folded text reaches from one of them into the next.
    """
    fields = (content.type, content.title or "", content.content)
    return _FIELD.join(map(folded, fields)) + _TAG + "".join(folded(t) + _TAG for t in content.tags)


def search_tag(tag: str) -> str:
    """Return what stands in the search text of whatever has this tag, and of nothing else."""
    return _TAG + folded(tag) + _TAG
