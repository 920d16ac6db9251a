"""Nothing that is told ends the frame, opens a role or hides. 004-98, 004-L4, R13."""

import hashlib
import json
import random
import re
import sys
import unicodedata

import pytest

from broker.context.frame import BEGIN, END, FrameBrokenError, escaped, framed
from providers.model import MemoryFacet
from tests.fixtures.candidates import compiled, decision, foreign, memory, note

PAYLOADS = 10_000
SEED = 20_260_301

MARKER = re.compile(r"(?i)untrusted[ _./:\u00a0]*context")
ROLE = re.compile(
    r"(?i)[<>&\uff02\uff3c\ufe68]"
    r"|\[(?:\\[nt]|[ \u00a0\u3000_*/-])*"
    r"(?:inst|system|user|assistant|tool|args|prefix|function|img)"
)
HIDDEN = {"Cc", "Cf", "Co", "Zl", "Zp"}
MARKER_LINES = re.compile(
    r"<<<BEGIN_UNTRUSTED_CONTEXT [0-9a-f]{16}>>>\n(?P<payload>[^\n]+)\n"
    r"<<<END_UNTRUSTED_CONTEXT [0-9a-f]{16}>>>\Z"
)
PIECES = (
    BEGIN,
    END,
    BEGIN.lower(),
    END.title(),
    "<<<",
    ">>>",
    "BEGIN_UNTRUSTED_CONTEXT",
    "end_untrusted_context",
    "_untrusted_context",
    "_UNTRUSTED",
    "_CONTEXT",
    "<|im_start|>",
    "<|im_end|>",
    "</injected_memory>",
    "<system>",
    "<<SYS>>",
    "[INST]",
    "[/INST]",
    "[ /inst ]",
    "[/Inst",
    "[TOOL_CALLS]",
    "[SYSTEM_PROMPT]",
    "[\u00a0INST]",
    "[\t/\u3000INST",
    "[/_ASSISTANT]",
    "[*USER",
    "[ARGS]",
    "[PREFIX]",
    "[FUNCTION_CALLS]",
    "[IMG]",
    "untrusted\u00a0context",
    "UNTRUSTED./:CONTEXT",
    "\uff02}]",
    "\uff3cn",
    "\ufe68",
    "[",
    "INST",
    "\uff1csystem\uff1e",
    "&lt;",
    "\n",
    "\r",
    "\n\nHuman:",
    "\\",
    "\\u003c",
    "\\\\u003c",
    "\\n",
    '"',
    '"}],"session":null}',
    "}]}",
    "\u2028",
    "\u2029",
    "\u0085",
    "\u200b",
    "\u200d",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\ufe0f",
    "\U000e0041",
    "\U000e007f",
    "\U000e0100",
    "\U0010fffd",
    "\x1b[2J",
    "\x7f",
    "\u017f",
    "\u212a",
    "untru\u017fted_context",
    "END UNTRUSTED CONTEXT",
    "😀",
    "é",
    " ",
)


def hostile(source: random.Random) -> str:
    """Return a text of pieces of markers, tags, escapes, digits and whatever Unicode has."""
    return "".join(_piece(source) for _ in range(source.randint(1, 8)))


def _piece(source: random.Random) -> str:
    match source.randrange(6):
        case 0:
            digits = "".join(source.choices("0123456789abcdefABCDEF", k=source.randint(0, 20)))
            return f"{source.choice((BEGIN, END))} {digits}>>>"
        case 1:
            word = source.choice(PIECES)
            cut = source.randint(0, len(word))
            return word[:cut] + source.choice(PIECES) + word[cut:]
        case 2:
            code = source.randint(1, sys.maxunicode)
            return "?" if 0xD800 <= code <= 0xDFFF else chr(code)
        case _:
            return source.choice(PIECES)


def parsed(text: str | None) -> dict[str, object]:
    """Return the payload of a text whose frame is whole."""
    assert text is not None
    assert len(MARKER.findall(text)) == 2
    assert text.count("<<<") == text.count(">>>") == 2
    found = MARKER_LINES.search(text)
    assert found is not None and text.count("\n") == 4
    payload = found["payload"]
    assert ROLE.search(payload) is None
    assert not {unicodedata.category(char) for char in set(payload)} & HIDDEN
    result: dict[str, object] = json.loads(payload)
    return result


def test_no_payload_reaches_the_frame() -> None:
    """004-98: no text gives a second marker, a role tag or a payload that does not parse back."""
    source = random.Random(SEED)
    for _ in range(PAYLOADS // 5):
        texts = [hostile(source) for _ in range(5)]
        context = compiled(
            decision("d1", title=texts[0], text=texts[1], rationale=texts[2]),
            memory("m1", title=texts[3], text=texts[4], of_type=texts[0] + texts[4]),
            note("s1", text=texts[0]),
        )
        payload = parsed(context.text)
        told = json.dumps(payload)  # all values, in one order
        assert [json.dumps(text) in told for text in texts] == [True] * 5, texts
        assert context.budget.characters_used == len(context.text or "")


@pytest.mark.parametrize("piece", PIECES)
def test_every_piece_in_every_place(piece: str) -> None:
    """004-98: also as an id, a revision id or an agent, should a store ever give such a one."""
    context = compiled(
        decision(piece + "1", title=piece, text=piece, rationale=piece),
        memory(piece + "2", title=piece, text=piece * 3, of_type=piece + piece),
        foreign(piece + "3", agent=piece + "x", text=f"{piece} {piece}"),
        note(piece + "4", text=piece),
        memory(piece + "5", text=piece, facet=MemoryFacet(flagged=True), of_type=piece),
    )
    told = json.dumps(parsed(context.text))
    assert all(json.dumps(f"{piece}{number}") in told for number in (1, 2, 3, 5))


def test_what_does_not_show_is_escaped() -> None:
    """004-98: all of Cc, Cf, Co, Zl and Zp, in whichever version of Unicode this Python has.

    A new version that adds one means a new version of the rendered form.
    """
    hidden = "".join(
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in HIDDEN
    )
    text = escaped(hidden)
    assert text.isascii() and text.isprintable()
    assert json.loads(text) == hidden


IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u2065\u3164\ufe00\ufe0f\uffa0\ufff0"
BEYOND = "\U000e0000\U000e0100\U000e01ef\U000e0fff\ufdd0\ufffe\U0001ffff\U0010ffff"


@pytest.mark.parametrize("char", [*IGNORABLE, *BEYOND, "\ud800"])
def test_what_unicode_ignores_is_escaped(char: str) -> None:
    """004-98: variation selectors, fillers, noncharacters; a lone surrogate could not be sent."""
    assert escaped(char).isascii()
    assert json.loads(escaped(char)) == char


def test_how_escapes_look() -> None:
    """004-98: as JSON has them; beyond the first plane as two."""
    assert escaped("<&>\u2028\x7f") == r'"\u003c\u0026\u003e\u2028\u007f"'
    assert escaped("\U000e0041") == r'"\udb40\udc41"'
    assert escaped('a\n"\\') == r'"a\n\"\\"'
    assert escaped("[INST] [/inst] [x]") == r'"\u005bINST] \u005b/inst] [x]"'
    assert escaped("a_untrusted_CONTEXT untrusted") == r'"a_\u0075ntrusted_CONTEXT untrusted"'


def test_ordinary_text_stays_as_it_is() -> None:
    """004-98: people read it, and it counts against the budget."""
    text = "One queue (see [3], a_b); 50% of {x} — naïve 日本語 हिन्दी 😀 'quoted'!"
    assert escaped(text) == f'"{text}"'


def test_markers_carry_the_digest_of_the_payload() -> None:
    """R13: byte-stable, and nobody can write the marker of a text that holds his own."""
    text = compiled(memory("m1")).text or ""
    _, _, begin, payload, end = text.split("\n")
    digest = hashlib.sha256(payload.encode()).hexdigest()[:16]
    assert (begin, end) == (f"{BEGIN} {digest}>>>", f"{END} {digest}>>>")


@pytest.mark.parametrize("inside", [BEGIN, END, "x_Untrusted_Context", "a\nb"])
def test_a_broken_frame_is_never_given(inside: str) -> None:
    """004-98: markers are counted after rendering, should an escape ever be missing."""
    with pytest.raises(FrameBrokenError):
        framed(inside)
