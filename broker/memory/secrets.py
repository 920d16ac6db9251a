"""Tells whether a text holds what looks like a secret (002-03).

What is found is named by a rule and never shown. Work grows with the length of the text and with
nothing else: patterns have fixed lengths or bounds, windows have bounds.
"""

import re
from enum import StrEnum
from typing import Final

from broker.memory.assignments import holds_assignment
from broker.memory.credentials import is_credential, is_masked
from broker.memory.literals import Literals
from broker.memory.lookalikes import shown


class SecretRule(StrEnum):
    """What a text looks like it holds, as callers read it."""

    PRIVATE_KEY = "private_key"
    ACCESS_KEY_ID = "access_key_id"
    SERVICE_TOKEN = "service_token"  # noqa: S105 - the name of a rule
    JSON_WEB_TOKEN = "json_web_token"  # noqa: S105 - the name of a rule
    URL_PASSWORD = "url_password"  # noqa: S105 - the name of a rule
    BEARER = "bearer"
    ASSIGNMENT = "secret_assignment"


def secret_rule(text: str) -> SecretRule | None:
    """Return the first rule that a text breaks; ``None``: it holds nothing that looks secret."""
    plain = shown(text)
    if _holds_private_key(plain):
        return SecretRule.PRIVATE_KEY
    for rule, begins, pattern in _SHAPES:
        if begins.stand_in(plain) and pattern.search(plain):
            return rule
    if _holds_url_password(plain):
        return SecretRule.URL_PASSWORD
    lowered = plain.lower()
    if _holds_bearer(plain, lowered):
        return SecretRule.BEARER
    return SecretRule.ASSIGNMENT if holds_assignment(plain, lowered) else None


# -------------------- well-known shapes

_TOKENS: Final = {
    # GitHub, GitLab
    "ghp_": "[A-Za-z0-9]{36}",
    "gho_": "[A-Za-z0-9]{36}",
    "ghu_": "[A-Za-z0-9]{36}",
    "ghs_": "[A-Za-z0-9]{36}",
    "ghr_": "[A-Za-z0-9]{36}",
    "github_pat_": "[A-Za-z0-9_]{22}",
    "glpat-": "[A-Za-z0-9_-]{20}",
    # Slack
    "xoxa-": "[A-Za-z0-9-]{10}",
    "xoxb-": "[A-Za-z0-9-]{10}",
    "xoxe-": "[A-Za-z0-9-]{10}",
    "xoxp-": "[A-Za-z0-9-]{10}",
    "xoxr-": "[A-Za-z0-9-]{10}",
    "xoxs-": "[A-Za-z0-9-]{10}",
    "xapp-": "[A-Za-z0-9-]{10}",
    "hooks.slack.com/services/": "[A-Za-z0-9/]{20}",
    # Google
    "AIza": "[A-Za-z0-9_-]{35}",
    "ya29.": "[A-Za-z0-9_-]{20}",
    "GOCSPX-": "[A-Za-z0-9_-]{20}",
    # OpenAI, Anthropic, Hugging Face
    "sk-proj-": "[A-Za-z0-9_-]{20}",
    "sk-svcacct-": "[A-Za-z0-9_-]{20}",
    "sk-ant-": "[A-Za-z0-9_-]{20}",
    "sk-": "[A-Za-z0-9]{32}",
    "hf_": "[A-Za-z0-9]{30}",
    # payments, packages, mail, hosting
    "sk_live_": "[A-Za-z0-9]{16}",
    "sk_test_": "[A-Za-z0-9]{16}",
    "rk_live_": "[A-Za-z0-9]{16}",
    "whsec_": "[A-Za-z0-9]{16}",
    "npm_": "[A-Za-z0-9]{36}",
    "pypi-AgE": "[A-Za-z0-9_-]{20}",
    "SG.": r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{16}",
    "dop_v1_": "[a-f0-9]{64}",
    "shpat_": "[a-fA-F0-9]{32}",
    "shpss_": "[a-fA-F0-9]{32}",
    "AGE-SECRET-KEY-1": "[A-Z0-9]{20}",
}
"""How the tokens of well-known services begin, and what follows at least."""

_SHAPES: Final = (
    (
        SecretRule.ACCESS_KEY_ID,
        Literals(("AKIA", "ASIA")),
        re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ),
    (
        SecretRule.JSON_WEB_TOKEN,
        Literals(("eyJ",)),
        re.compile(
            r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{7,512}+\.[A-Za-z0-9_-]{6,2048}+\.[A-Za-z0-9_-]{6}"
        ),
    ),
    (
        SecretRule.SERVICE_TOKEN,
        Literals(_TOKENS),
        re.compile(
            "(?<![A-Za-z0-9])(?:"
            + "|".join(re.escape(begin) + rest for begin, rest in _TOKENS.items())
            + ")"
        ),
    ),
)

_PEM: Final = "-----BEGIN "
_PEM_WINDOW: Final = 64


def _holds_private_key(text: str) -> bool:
    at = text.find(_PEM)
    while at >= 0:
        label = text[at + len(_PEM) : at + _PEM_WINDOW].partition("-----")[0]
        if "PRIVATE KEY" in label:
            return True
        at = text.find(_PEM, at + 1)
    return False


# -------------------- passwords in addresses, bearers

_AUTHORITY_MAX: Final = 512
_AUTHORITY: Final = re.compile(rf"[^\s/?#\"'<>`]{{1,{_AUTHORITY_MAX}}}+")


def _holds_url_password(text: str) -> bool:
    at = text.find("://")
    while at >= 0:
        found = _AUTHORITY.match(text, at + 3)
        user, is_there, _ = found.group().rpartition("@") if found else ("", "", "")
        password = user.partition(":")[2]
        if is_there and not is_masked(password) and not password.isupper():
            return True
        at = text.find("://", found.end() if found else at + 3)
    return False


_BEARER: Final = "bearer"
_FOLLOWS: Final = re.compile(r"[ \t]{1,4}+([A-Za-z0-9._~+/=-]{1,128}+)")


def _holds_bearer(text: str, lowered: str) -> bool:
    """``lowered`` may be longer or shorter where a letter is not of ASCII: then it is not used."""
    looked = lowered if len(lowered) == len(text) else text
    at = looked.find(_BEARER)
    while at >= 0:
        at += len(_BEARER)
        found = _FOLLOWS.match(text, at)
        if found and is_credential(found.group(1)):
            return True
        at = looked.find(_BEARER, at)
    return False
