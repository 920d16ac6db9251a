"""The reference with one bug each in how a search reads text."""

import re
import unicodedata
from dataclasses import replace

from providers.conformance.reference import ReferenceMemoryProvider
from providers.folding import folded
from providers.model import Content, Record
from providers.requests import SearchRequest
from tests.conformance.planted.bug import caught_by


class _Reads(ReferenceMemoryProvider):
    """Looks for text in its own way, in each of the fields."""

    def _fold(self, text: str) -> str:
        return folded(text)

    def _holds(self, field: str, text: str) -> bool:
        return self._fold(text) in self._fold(field)

    def _fields(self, content: Content) -> tuple[str, ...]:
        return (content.type, content.title or "", content.content, *content.tags)

    def _fits(self, record: Record, request: SearchRequest) -> bool:
        fields = self._fields(record.current.content)
        text = request.text or ""
        return any(self._holds(field, text) for field in fields) and super()._fits(
            record, replace(request, text=None)
        )


@caught_by("every_character_means_itself")
class TakesTextForAPattern(_Reads):
    def _holds(self, field: str, text: str) -> bool:
        literal = re.escape(folded(text)).replace("%", ".*").replace("_", ".")
        return re.search(literal, folded(field), re.DOTALL) is not None


@caught_by("every_character_means_itself")
class TakesBackslashForAnEscape(_Reads):
    def _holds(self, field: str, text: str) -> bool:
        return folded(re.sub(r"\\(.)", r"\1", text)) in folded(field)


@caught_by("every_character_means_itself")
class LooksForWords(_Reads):
    def _holds(self, field: str, text: str) -> bool:
        return {*re.findall(r"\w+", folded(text))} <= {*re.findall(r"\w+", folded(field))}


@caught_by("every_character_means_itself")
class TrimsText(_Reads):
    def _holds(self, field: str, text: str) -> bool:
        return folded(" ".join(text.split())) in folded(" ".join(field.split()))


@caught_by("case_and_composition_do_not_count")
class MindsCase(_Reads):
    def _fold(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


@caught_by("case_and_composition_do_not_count")
class LowersCase(_Reads):
    def _fold(self, text: str) -> str:
        return unicodedata.normalize("NFC", text.lower())


@caught_by("case_and_composition_do_not_count")
class MindsComposition(_Reads):
    def _fold(self, text: str) -> str:
        return text.casefold()


@caught_by("case_and_composition_do_not_count")
class ComparesDecomposed(_Reads):
    def _fold(self, text: str) -> str:
        return unicodedata.normalize("NFD", text.casefold())


@caught_by("case_and_composition_do_not_count")
class FoldsCompatibilityForms(_Reads):
    def _fold(self, text: str) -> str:
        return folded(unicodedata.normalize("NFKC", text))


@caught_by("text_is_looked_for_in_four_fields")
class LooksInTheRationale(_Reads):
    def _fields(self, content: Content) -> tuple[str, ...]:
        return (*super()._fields(content), content.rationale or "")


@caught_by("text_is_looked_for_in_four_fields")
class LooksInAllFieldsTogether(_Reads):
    def _fields(self, content: Content) -> tuple[str, ...]:
        return ("\n".join(super()._fields(content)), "".join(super()._fields(content)))


@caught_by("text_is_looked_for_in_four_fields")
class ForgetsTheTitle(_Reads):
    def _fields(self, content: Content) -> tuple[str, ...]:
        return super()._fields(replace(content, title=None))


@caught_by("text_is_found_however_long")
class IndexesTheBeginning(_Reads):
    def _fields(self, content: Content) -> tuple[str, ...]:
        return tuple(field[:8000] for field in super()._fields(content))


@caught_by("unstorable_text_finds_nothing")
class CutsTextAtNul(_Reads):
    def _holds(self, field: str, text: str) -> bool:
        return folded(text.split("\0", maxsplit=1)[0]) in folded(field)
