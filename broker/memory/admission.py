"""The one way of content into a store: reasoning out, secrets refused, instructions flagged.

Whatever writes a text (create, update, restore, propose, promote, import, remember) passes it
through ``screened`` before it decides, or while it decides where the text was not known before, and
the head that comes of it through ``marked``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from broker.domain.errors import ContentRefusedError, Violation
from broker.memory.assignments import is_named_secret
from broker.memory.injection import looks_like_instruction
from broker.memory.reasoning import stripped
from broker.memory.secrets import SecretRule, secret_rule
from providers.model import Content, HeadPut, MemoryFacet, OriginTier, Revision

ONLY_REASONING: Final = "only_reasoning"

_FACET_TEXTS: Final = ("namespace", "subject", "source", "epoch")
_METADATA: Final = "facet.metadata"


def screened(content: Content, facet: MemoryFacet | None = None) -> Content:
    """Return the content without leaked reasoning; nothing else in it changes (000-03).

    Raises:
        ContentRefusedError: a text of the content or of the facet holds what looks like a secret,
            or one of the content is nothing but reasoning. Not retryable.
    """
    left, violations = judged(content, facet)
    if violations:
        raise ContentRefusedError(tuple(violations))
    return left


def judged(content: Content, facet: MemoryFacet | None) -> tuple[Content, list[Violation]]:
    """Return the content without leaked reasoning, and what it is refused for."""
    left = _without_reasoning(content)
    violations = [
        Violation(field, ONLY_REASONING)
        for field in ("title", "content", "rationale")
        if getattr(left, field) == "" != getattr(content, field)
    ]
    found: dict[str, Violation] = {}
    for field, rule in _secrets(left, facet):
        found.setdefault(field, Violation(field, rule))
    return left, [*violations, *found.values()]


def refuse_secret(field: str, text: str) -> None:
    """Refuse a text beside the content, such as a reason, that holds what looks like a secret.

    Raises:
        ContentRefusedError: it does. Not retryable.
    """
    rule = secret_rule(text)
    if rule is not None:
        raise ContentRefusedError((Violation(field, rule),))


def retold(put: HeadPut, content: Content) -> HeadPut:
    """Return a head that takes its text from elsewhere with the text that was let in."""
    current = replace(put.record.current, content=content)
    return replace(put, record=replace(put.record, current=current))


def has_flag(revision: Revision) -> bool:
    """Tell whether a revision is flagged."""
    return revision.facet is not None and revision.facet.flagged


def marked(put: HeadPut, before: Revision | None = None, *, told: bool = False) -> HeadPut:
    """Return the head with its flag: whether its text looks like an instruction to a model.

    Args:
        put: The head. Where it says what ``before`` says it stays as it is.
        before: The revision it follows, where there is one.
        told: Whether somebody else flagged the text: that stands.
    """
    after = put.record.current
    if before is not None and not told and _said(before) == _said(after):
        return put
    return flagged(put, is_flagged=told or steers(after.content, after.facet))


def steers(content: Content, facet: MemoryFacet | None) -> bool:
    """Tell whether a text of the content or of the facet looks like an instruction to a model."""
    texts = (*_content_texts(content), *_facet_texts(facet))
    return any(looks_like_instruction(text) for _, text in texts)


def flagged(put: HeadPut, *, is_flagged: bool) -> HeadPut:
    """Return the head with this flag. One that has no facet gets one to be flagged in."""
    after = put.record.current
    if is_flagged == has_flag(after):
        return put
    facet = after.facet or MemoryFacet(origin_tier=OriginTier.EXTERNAL)
    current = replace(after, facet=replace(facet, flagged=is_flagged))
    return replace(put, record=replace(put.record, current=current))


# -------------------- texts


def _without_reasoning(content: Content) -> Content:
    if "<" not in f"{content.content}{content.title}{content.rationale}":
        return content
    return replace(
        content,
        title=None if content.title is None else stripped(content.title),
        content=stripped(content.content),
        rationale=None if content.rationale is None else stripped(content.rationale),
    )


def _secrets(content: Content, facet: MemoryFacet | None) -> Iterator[tuple[str, SecretRule]]:
    for field, text in (*_content_texts(content), *_facet_texts(facet)):
        rule = secret_rule(text)
        if rule is not None:
            yield field, rule
    if facet is not None and _names_secret(facet.metadata):
        yield _METADATA, SecretRule.ASSIGNMENT


def _said(revision: Revision) -> list[tuple[str, str]]:
    return [*_content_texts(revision.content), *_facet_texts(revision.facet)]


def _content_texts(content: Content) -> Iterator[tuple[str, str]]:
    yield "type", content.type
    yield "content", content.content
    for name in ("title", "rationale"):
        text = getattr(content, name)
        if text is not None:
            yield name, text
    for tag in content.tags:
        yield "tags", tag


def _facet_texts(facet: MemoryFacet | None) -> Iterator[tuple[str, str]]:
    if facet is None:
        return
    for name in _FACET_TEXTS:
        text = getattr(facet, name)
        if text is not None:
            yield f"facet.{name}", text
    for text in _document_texts(facet.metadata):
        yield _METADATA, text


def _document_texts(value: object) -> Iterator[str]:
    """Give every string of metadata, names included. Its depth was bounded before."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, inner in value.items():
                yield name
                yield from _document_texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _document_texts(inner)


def _names_secret(value: object) -> bool:
    """Tell whether a name anywhere in metadata is that of a secret, and has a value."""
    match value:
        case Mapping():
            return any(
                is_named_secret(name, _word(inner)) or _names_secret(inner)
                for name, inner in value.items()
            )
        case list() | tuple():
            return any(map(_names_secret, value))
        case _:
            return False


def _word(value: object) -> str:
    """Return what a value is as a word; lists and objects are none."""
    match value:
        case str():
            return value
        case int() | float() if float(value).is_integer():
            return str(int(value))
        case _:
            return ""
