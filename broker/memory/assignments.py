"""Finds a secret by its name: ``password: …``, ``api_key=…``, ``Authorization: Basic …`` (002-03).

A scanner: it goes from separator to separator, looks back for a name and ahead for a value, both
within bounds. What is ordinary prose ("the token: see below", "password: none") has no value.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from broker.memory.credentials import is_credential, is_masked, is_mixed

_NAME_WINDOW: Final = 32
_VALUE_WINDOW: Final = 96
"""Code points that are looked at before and after a separator; enough to tell what it is."""
_ENCODED_MIN: Final = 8
_PASSWORD_DIGITS: Final = 4
_SECRET_DIGITS: Final = 6
_MIXED_MIN: Final = 4
_SYMBOLS_MIN: Final = 6


class _Weight(IntEnum):
    """How much a name by itself says that a secret follows."""

    NONE = 0
    WEAK = 1
    """``key``, ``token``: what follows has to look drawn by a machine."""
    STRONG = 2
    """``secret``, ``api key``: or else be assigned or quoted, as code and settings are."""
    PASSWORD = 3
    """``password``: or be a word by itself."""


_PASSWORDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "kennwort",
    "wachtwoord",
    "contrase\u00f1a",
    "contrasena",
    "mot de passe",
    "senha",
    "\u043f\u0430\u0440\u043e\u043b\u044c",
    "\u5bc6\u7801",
    "\u5bc6\u78bc",
    "\u30d1\u30b9\u30ef\u30fc\u30c9",
    "\ube44\ubc00\ubc88\ud638",
)
_JOINED: Final = (
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authtoken",
    "accesstoken",
    "credential",
    "credentials",
)
_WHOLE: Final = {
    "pwd": _Weight.PASSWORD,
    "secret": _Weight.STRONG,
    "key": _Weight.WEAK,
    "token": _Weight.WEAK,
    "bearer": _Weight.WEAK,
    "authorization": _Weight.WEAK,
}
_STEMS: Final = (*_PASSWORDS, *_JOINED, *_WHOLE)
_STEM_SET: Final = frozenset(_STEMS)

_SECRET_WHOSE: Final = frozenset(
    re.findall(
        "[a-z]+",
        """
        access account admin api app auth aws azure bot client csrf deploy encryption gcp github
        gitlab hmac id jwt license master npm oauth openai personal private refresh registration
        root secret security service session shared signing slack ssh storage stripe webhook
        """,
    )
)
"""Before ``key`` and ``token``: then what follows is a secret as a rule."""

_PUBLIC_WHOSE: Final = frozenset(
    re.findall(
        "[a-z]+",
        """
        cache cursor continuation end fencing foreign idempotency lease next page partition primary
        public row sort stop
        """,
    )
)
"""Before ``key`` and ``token``: then it is none."""

_NOTHING: Final = frozenset(
    re.findall(
        "[a-z]+",
        """
        a an any ask blank bool boolean bytes correct default empty example expired false float
        forgotten hidden int integer invalid it kept lost mandatory masked missing my na no none not
        null nil number object optional our placeholder private redacted required reset revoked
        rotated same secret see str string stored text the their this true unchanged
        undefined unknown unset uuid valid value wrong yes your
        """,
    )
)
"""Words that stand where a value would, and are none."""

_SCHEMES: Final = frozenset({"basic", "bearer", "token", "digest", "dpop", "apikey", "negotiate"})
_SEPARATOR: Final = re.compile("[:=]{1,3}+>?")
_PARTS: Final = re.compile(r"[A-Z]{1,96}+(?![a-z])|[A-Z]?[^\W\d_A-Z]{1,96}+|\d{1,96}+")
_QUOTED: Final = re.compile(r"([\"'`])([^\"'`\n]{1,96}+)\1")
_WORD: Final = re.compile(r"[^\s\"'`,;]{1,96}+")
_REFERENCE: Final = re.compile(
    r"(?:https?://|\.{0,2}/|~/|os\.|process\.|env[.:]|vault:|op://|secrets?[./]).{0,96}+", re.DOTALL
)
_DOTTED: Final = re.compile(r"[A-Za-z_]{1,96}+(?>(?:\.[A-Za-z_]{1,96}+){1,16})")
_LETTER: Final = re.compile("[A-Za-z]")
_DIGIT: Final = re.compile("[0-9]")
_SYMBOL: Final = re.compile("[!@#$%^&]")
_CLOSERS: Final = "\"'`)]}*_ \t"


def holds_assignment(text: str, lowered: str) -> bool:
    """Tell whether a name of a secret is followed by a value; ``lowered`` is the text in small."""
    if ":" not in text and "=" not in text:
        return False
    if not any(stem in lowered for stem in _STEMS):
        return False
    return any(
        _gives_secret(text, found.start(), found.end(), assigned="=" in found.group())
        for found in _SEPARATOR.finditer(text)
    )


def is_named_secret(name: str, value: str) -> bool:
    """Tell whether a value is a secret for the name that it is stored under."""
    return _is_secret(_weight(name), _Value(value, assigned=True, closed=True))


def _gives_secret(text: str, start: int, end: int, *, assigned: bool) -> bool:
    lead = text[max(0, start - _NAME_WINDOW) : start].rstrip(_CLOSERS)
    if not lead.lower().endswith(_STEMS):
        return False
    weight = _weight(lead[1 + max(map(lead.rfind, "\n:=")) :])
    if weight is _Weight.NONE:
        return False
    value = _value_of(text[end : end + _VALUE_WINDOW].partition("\n")[0], assigned=assigned)
    return value is not None and _is_secret(weight, value)


# -------------------- names


def _weight(name: str) -> _Weight:
    lowered = name.lower()
    if lowered.endswith(_PASSWORDS):
        return _Weight.PASSWORD
    if lowered.endswith(_JOINED):
        return _Weight.STRONG
    parts = [each.lower() for each in _PARTS.findall(name)]
    weight = _WHOLE.get(parts[-1], _Weight.NONE) if parts else _Weight.NONE
    whose = parts[-2] if len(parts) > 1 else ""
    if weight is not _Weight.WEAK or not whose:
        return weight
    if whose in _PUBLIC_WHOSE:
        return _Weight.NONE
    return _Weight.STRONG if whose in _SECRET_WHOSE else weight


# -------------------- values


@dataclass(frozen=True, slots=True)
class _Value:
    """What stands after a separator.

    ``closed``: quoted, or nothing more follows on its line. ``schemed``: the name of a scheme of
    HTTP came first.
    """

    text: str
    assigned: bool
    closed: bool
    quoted: bool = False
    schemed: bool = False


def _value_of(rest: str, *, assigned: bool) -> _Value | None:
    rest = rest.lstrip(" \t*")
    quoted = _QUOTED.match(rest)
    if quoted:
        return _Value(quoted.group(2), assigned, closed=True, quoted=True)
    found = _WORD.match(rest.lstrip("\"'`"))
    if found is None:
        return None
    after = found.string[found.end() :].lstrip(" \t\"'`")
    if found.group().lower() in _SCHEMES:
        following = _WORD.match(after)
        if following is None:
            return None
        return _Value(following.group(), assigned, closed=False, schemed=True)
    word = found.group().rstrip(".!?)]}")
    ended = len(word) < len(found.group())
    return _Value(word or found.group(), assigned, closed=ended or after[:1] in ("", ",", ";"))


def _is_secret(weight: _Weight, value: _Value) -> bool:
    return (
        weight is not _Weight.NONE
        and _looks_secret(weight, value)
        and not is_masked(value.text)
        and not _is_reference(value.text, has_digits=weight is not _Weight.WEAK)
    )


def _looks_secret(weight: _Weight, value: _Value) -> bool:
    text = value.text
    if weight is _Weight.WEAK:
        return is_credential(text) or (value.schemed and _is_encoded(text))
    if text.isdigit():
        return len(text) >= (_PASSWORD_DIGITS if weight is _Weight.PASSWORD else _SECRET_DIGITS)
    if is_mixed(text):
        return len(text) >= _MIXED_MIN
    if not text.isascii() or not _LETTER.search(text):
        return False
    return _is_word_secret(weight, value)


def _is_encoded(text: str) -> bool:
    """Tell whether small and capital letters are mixed as in base64, and in no word."""
    return len(text) >= _ENCODED_MIN and not (text.islower() or text.isupper() or text.istitle())


def _is_word_secret(weight: _Weight, value: _Value) -> bool:
    """Judge letters without a digit: a word of prose, unless it is set, quoted or by itself."""
    if _SYMBOL.search(value.text) and len(value.text) >= _SYMBOLS_MIN:
        return True
    if value.assigned or value.quoted:
        return value.quoted or not value.text.isupper()
    return weight is _Weight.PASSWORD and value.closed


def _is_reference(text: str, *, has_digits: bool) -> bool:
    """Tell whether a value says where the secret is, or its name, or that there is none.

    ``has_digits``: with digits it is not taken for a name.
    """
    lowered = text.lower()
    if lowered in _NOTHING or _REFERENCE.match(lowered) or _DOTTED.fullmatch(text):
        return True
    if "(" in text or lowered.startswith("your"):
        return True
    if has_digits and _DIGIT.search(text):
        return False
    return not _STEM_SET.isdisjoint(each.lower() for each in _PARTS.findall(text))
