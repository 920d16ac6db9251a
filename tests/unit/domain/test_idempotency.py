"""Fingerprints and page tokens."""

import base64

import orjson
import pytest

from broker.domain.errors import IdempotencyKeyReusedError, PageTokenInvalidError
from broker.domain.fields import Violations, checked_content
from broker.domain.idempotency import check_same_request, fingerprint, receipt_for
from broker.domain.paging import (
    check_token_syntax,
    digest,
    page_limit,
    page_token,
    position_of,
)
from broker.domain.requests import ContentInput, FacetInput, ScopeInput
from providers.model import Kind, ReceiptKey, RevisionRef
from tests.unit.domain.test_records import NOW

SCOPE = ScopeInput("p", "r", "a")


def content_of(tags: tuple[str, ...] = ("x",), title: str = "") -> object:
    """Return a normalised content set."""
    given = ContentInput(
        type="note", title=title, content="c", rationale="", importance=None, tags=tags
    )
    return checked_content([], given, importance_default=0.5)


def test_the_order_and_case_of_tags_do_not_matter() -> None:
    """004-50, 004-62: reordered, repeated and padded tags are the same request."""
    one = fingerprint("M", SCOPE, {"content": content_of(("a", "b"))})
    assert one == fingerprint("M", SCOPE, {"content": content_of((" b", "a", "b "))})


def test_what_is_not_set_does_not_count() -> None:
    """004-62: fields added later do not change the fingerprints of requests that lack them."""
    one = fingerprint("M", SCOPE, {"content": content_of()})
    assert one == fingerprint("M", SCOPE, {"content": content_of(), "new": None, "newer": ""})
    assert one == fingerprint("M", SCOPE, {"content": content_of(), "facet": FacetInput()})


@pytest.mark.parametrize(
    ("method", "scope", "fields"),
    [
        ("N", SCOPE, {"content": content_of()}),
        ("M", ScopeInput("q", "r", "a"), {"content": content_of()}),
        ("M", ScopeInput("p", "s", "a"), {"content": content_of()}),
        ("M", ScopeInput("p", "r", "b"), {"content": content_of()}),
        ("M", SCOPE, {"content": content_of(title="t")}),
        ("M", SCOPE, {"content": content_of(), "kind": Kind.MEMORY}),
        ("M", SCOPE, {"content": content_of(), "facet": FacetInput(subject="s")}),
        ("M", SCOPE, {"content": content_of(), "facet": FacetInput(expire_time=NOW)}),
        ("M", SCOPE, {"content": content_of(), "number": 0}),
        ("M", SCOPE, {"content": content_of(), "yes": False}),
    ],
)
def test_everything_set_counts(method: str, scope: ScopeInput, fields: dict[str, object]) -> None:
    """004-62: method, each part of the scope, each set field; zero and false are values."""
    assert fingerprint(method, scope, fields) != fingerprint("M", SCOPE, {"content": content_of()})


def test_a_fingerprint_is_stable() -> None:
    """004-63: receipts outlive releases, so this value must never change."""
    assert (
        fingerprint("CreateRecord", SCOPE, {"kind": Kind.MEMORY, "content": content_of()})
        == "e3f98ffd914a7b232fb98cdf833adc0b831eb9f2fea2cd7400a1d642087f32a5"
    )


def test_another_request_with_the_key_is_refused() -> None:
    """004-62: same key, other method or other fingerprint."""
    receipt = receipt_for(
        key=ReceiptKey("f" * 64, "k"),
        method="M",
        fingerprint="1",
        refs=(RevisionRef("id", 1),),
        create_time=NOW,
    )
    check_same_request(receipt, "M", "1")
    for method, given in (("N", "1"), ("M", "2")):
        with pytest.raises(IdempotencyKeyReusedError):
            check_same_request(receipt, method, given)


@pytest.mark.parametrize(
    ("given", "limit"), [(0, 50), (1, 1), (100, 100), (101, 100), (2**31 - 1, 100)]
)
def test_page_sizes(given: int, limit: int) -> None:
    """004-66 with our rule: 0 means 50, more than 100 means 100."""
    violations: Violations = []
    assert (page_limit(violations, given), violations) == (limit, [])


def test_a_negative_page_size_is_refused() -> None:
    """004-66: negative is refused and named."""
    violations: Violations = []
    page_limit(violations, -1)
    assert [violation.field for violation in violations] == ["page_size"]


def test_a_token_leads_back_to_its_position() -> None:
    """004-67 with our rule: keyset position, at most 512 bytes."""
    bound_to = digest("List", "tenant", "p" * 256)
    token = page_token(bound_to, [7, "i" * 256])
    assert len(token) <= 512
    assert position_of(token, bound_to) == [7, "i" * 256]
    assert position_of("", bound_to) is None


def test_a_token_of_another_request_is_refused() -> None:
    """004-67: whatever differs in what it is bound to."""
    with pytest.raises(PageTokenInvalidError):
        position_of(page_token(digest("A"), [1]), digest("B"))
    assert digest("a", "b") != digest("ab", "")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "!!!!",
        "é",
        "A" * 513,
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b'{"a":1}').decode(),
        base64.urlsafe_b64encode(orjson.dumps([2, "d", [1]])).decode(),
        base64.urlsafe_b64encode(orjson.dumps([1, "d", [None]])).decode(),
        base64.urlsafe_b64encode(orjson.dumps([1, 2, [1]])).decode(),
        base64.urlsafe_b64encode(orjson.dumps([1, "d", [True]])).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_malformed_tokens_are_refused(token: str) -> None:
    """004-67: nothing but what the broker made."""
    with pytest.raises(PageTokenInvalidError):
        check_token_syntax(token)
