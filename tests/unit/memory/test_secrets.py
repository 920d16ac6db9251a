"""What looks like a secret is told from what does not."""

import base64
import string
from random import Random
from types import ModuleType

import pytest

from broker.memory import assignments, credentials, secrets
from broker.memory.assignments import is_named_secret
from broker.memory.secrets import SecretRule, secret_rule
from tests.unit.memory.growth import GROWTH_MAX, growth, loose_repeats, patterns_of

ASSIGNED = (
    "password: hunter2",
    "Password: swordfish",
    "the PASSWORD is in here. password: hunter2 for the admin",
    "**Password**: hunter2",
    "password:hunter2",
    "password = horse",
    "pwd=letmein",
    "passwd => tr0ub4dor",
    "passphrase: correct-horse-battery",
    'passphrase: "correct horse battery"',
    "password: 123456",
    "Password: P@ssword",
    "DB_PASSWORD=s3cr3t!",
    "dbPassword: Passw0rd",
    "my-password := x1y2",
    "passwort: geheim",
    "\u5bc6\u7801\uff1aabc123",
    "pass\u200bword: hunter2",
    "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1a hunter2",
    "secret=shh",
    "secret: abc1",
    '{"client_secret": "patience"}',
    "api_key=abc123",
    "API key: 12ab34cd",
    "apiKey: 'abcdefgh'",
    "X-Api-Key: 0123456789",
    "secretAccessKey: wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz",
    "access token: 3f2a9c1b",
    "token: abc123",
    'token = "abc123def"',
    "key=abc123",
    "key: Zm9vYmFyYmF6cXV4MTIzNDU2",
    "key: live.q7Zm9vYmFyYmF6_x",
    "credential: admin1:pass2",
    "authorization: Basic dXNlcjpwYXNz",
    "curl -H 'Authorization: token 3f2a9c1b'",
    "bearer: 9f86d081884c7d65",
    "line one\r\npassword: hunter2\r\nline three",
)

PROSE = (
    "the token: see below",
    "password: none",
    "Password: required",
    "password: None.",
    "password: please ask Bob",
    "password: see the vault",
    "password: 8-character minimum",
    "password policy: at least 12 characters",
    "password:",
    "password:\nhunter2 is a character in a film",
    "password: ****",
    "password: <yours>",
    "password: ${DB_PASSWORD}",
    "password: $DB_PASSWORD",
    "password: {{ vault.db }}",
    'password = os.environ["PW"]',
    "password = settings.database.password",
    "password=password",
    'password: str = ""',
    "Client(api_key=api_key, secret=settings.SECRET)",
    "credentials: https://vault.example/x1",
    "credentials: /etc/broker/credentials1",
    "api key: YOUR_API_KEY",
    "API_KEY = SUPERUSER_KEY",
    "the secret: patience",
    "The key: be patient.",
    "the key: patience",
    "key: user-42",
    "Key: Ctrl+C",
    "access key: ctrl+k",
    "primary key: user_id1",
    "sort key = created_at2",
    "cache key: tenant/project/42",
    "idempotency key: order20240501x",
    "page token: abc123x",
    "key: canary-5b7c1e-value and key: order-20240501-17",
    "record key: 550e8400-e29b-41d4-a716-446655440000",
    "def sign(key: Ed25519PrivateKey) -> bytes: ...",
    "token: string",
    "tokens: 4000, max_tokens=16000",
    "Token: word segmentation by Unicode",
    "monkey: banana12, turkey=abc123, keyword: alpha9, tokenizer: v2beta1",
    "Authorization: Bearer <token>",
    "authorization: bearer token",
    "authorization: required",
    "\u5bc6\u7801\uff1a\u8bf7\u8054\u7cfb\u7ba1\u7406\u5458",
    "bearer tokens expire in 60s",
    "Bearer authentication is used",
    "the bearer of news2024 came",
)


@pytest.mark.parametrize("text", ASSIGNED)
def test_a_name_and_a_value(text: str) -> None:
    """002-03: a name of a secret, a separator and a value."""
    assert secret_rule(text) is SecretRule.ASSIGNMENT


@pytest.mark.parametrize("text", PROSE)
def test_no_value(text: str) -> None:
    """002-03: prose about secrets, placeholders, code that names one, and public keys."""
    assert secret_rule(text) is None


def drawn(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Return what looks drawn at random, the same in every run."""
    return "".join(Random(length).choices(alphabet, k=length))


UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


def web_token() -> str:
    """Return something in the form of a signed token."""
    head, body = (
        base64.urlsafe_b64encode(text).decode().rstrip("=")
        for text in (b'{"alg":"none","typ":"JWT"}', b'{"sub":"nobody","admin":true}')
    )
    return f"{head}.{body}.{drawn(43)}"


SHAPES = {
    "-----BEGIN PRIVATE KEY-----\nMII": SecretRule.PRIVATE_KEY,
    "x -----BEGIN OPENSSH PRIVATE KEY-----": SecretRule.PRIVATE_KEY,
    "-----BEGIN PGP PRIVATE KEY BLOCK-----": SecretRule.PRIVATE_KEY,
    f"id AKIA{drawn(16, UPPER)} here": SecretRule.ACCESS_KEY_ID,
    f"ASIA{drawn(16, UPPER)}": SecretRule.ACCESS_KEY_ID,
    f"ghp_{drawn(36)}": SecretRule.SERVICE_TOKEN,
    f"see (ghs_{drawn(36)})": SecretRule.SERVICE_TOKEN,
    f"github_pat_{drawn(30)}": SecretRule.SERVICE_TOKEN,
    f"glpat-{drawn(20)}": SecretRule.SERVICE_TOKEN,
    f"xoxb-{drawn(12, string.digits)}-{drawn(24)}": SecretRule.SERVICE_TOKEN,
    f"https://hooks.slack.com/services/T{drawn(9)}/B{drawn(9)}/x": SecretRule.SERVICE_TOKEN,
    f"AIza{drawn(35)}": SecretRule.SERVICE_TOKEN,
    f"ya29.{drawn(40)}": SecretRule.SERVICE_TOKEN,
    f"GOCSPX-{drawn(28)}": SecretRule.SERVICE_TOKEN,
    f"sk-{drawn(48)}": SecretRule.SERVICE_TOKEN,
    f"sk-proj-{drawn(48)}": SecretRule.SERVICE_TOKEN,
    f"sk-ant-api03-{drawn(48)}": SecretRule.SERVICE_TOKEN,
    f"hf_{drawn(34)}": SecretRule.SERVICE_TOKEN,
    f"sk_live_{drawn(24)}": SecretRule.SERVICE_TOKEN,
    f"npm_{drawn(36)}": SecretRule.SERVICE_TOKEN,
    f"pypi-AgEIcHlwaS5vcmc{drawn(30)}": SecretRule.SERVICE_TOKEN,
    f"SG.{drawn(22)}.{drawn(43)}": SecretRule.SERVICE_TOKEN,
    f"shpat_{drawn(32, HEX)}": SecretRule.SERVICE_TOKEN,
    f"AGE-SECRET-KEY-1{drawn(58, UPPER)}": SecretRule.SERVICE_TOKEN,
    f"cookie {web_token()}; path": SecretRule.JSON_WEB_TOKEN,
    "postgresql://bob:pw@host:5432/db": SecretRule.URL_PASSWORD,
    "see https://user:password@host/x": SecretRule.URL_PASSWORD,
    "redis://:pa:ss@host": SecretRule.URL_PASSWORD,
    f"curl -H 'Bearer {drawn(40)}'": SecretRule.BEARER,
    "Authorization: Bearer abcdef123456": SecretRule.BEARER,
    f"BEARER  {drawn(20, HEX)}": SecretRule.BEARER,
    f"gh\u200bp_{drawn(36)}": SecretRule.SERVICE_TOKEN,
}

NEAR = (
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nPRIVATE KEY elsewhere",
    f"AKIA{drawn(15, UPPER)}",
    f"AKIA{drawn(17, UPPER)}",
    f"xAKIA{drawn(16, UPPER)}",
    f"ghp_{drawn(35)}",
    "ghp_your_token_goes_here_and_so_on_and_on",
    "xoxb-token",
    "AIza, the common prefix",
    "risk-assessment-for-the-second-quarter-of-2024",
    "sk-learn and sk-SK are no keys",
    "pk_live_1234567890abcdef is public",
    "eyJhbGciOiJub25lIn0.short.x",
    "SG.1 and SG.2",
    "https://host:8080/path?user=a@b.c",
    "https://user@host/",
    "postgresql://ROLE:PASSWORD@HOST:5432/knowledge",
    "https://user:<password>@host/ and https://user:***@host/ and https://user:${PW}@host/",
    "mailto:a:b@c.d",
    "1://2",
    "bearer abc12",
)


@pytest.mark.parametrize(("text", "rule"), SHAPES.items(), ids=range(len(SHAPES)))
def test_known_shapes(text: str, rule: SecretRule) -> None:
    """002-03: keys and tokens of well-known services, wherever they stand."""
    assert secret_rule(text) is rule
    assert secret_rule(f"a\n\u00e9 {text}\n") is rule


@pytest.mark.parametrize("text", NEAR, ids=range(len(NEAR)))
def test_nearly_such_a_shape(text: str) -> None:
    """002-03: one character less, one more, public halves, addresses without a password."""
    assert secret_rule(text) is None


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("password", "hunter2", True),
        ("password", "swordfish", True),
        ("db.password", "x1y2", True),
        ("apiKey", "abcdef", True),
        ("client-secret", "patience", True),
        ("token", "abc123", True),
        ("password", "none", False),
        ("password", "", False),
        ("password_hint", "the dog1", False),
        ("token", "word", False),
        ("token", "string", False),
        ("key", "session-1", False),
        ("page_token", "abc123", False),
        ("tokens", "abc123", False),
        ("", "abc123", False),
    ],
)
def test_a_value_under_a_name(name: str, value: str, *, is_secret: bool) -> None:
    """002-03: a key of metadata is the name of its value."""
    assert is_named_secret(name, value) is is_secret


UNITS = (
    "key:",
    "password: ",
    "password=",
    "'key':'",
    "token=a ",
    "authorization: bearer x ",
    "bearer ",
    "://a:b",
    "a@://",
    "ghp_",
    "eyJ",
    "eyJaaaaaaa",
    "-----BEGIN ",
    "SG.aaaaaaaaaaaaaaaaaaaaaa.",
    "a",
    ":",
    "\u0430",
)


@pytest.mark.parametrize("unit", UNITS)
def test_work_is_linear(unit: str) -> None:
    """Screening uses linear work: four times the text is four times the work."""
    assert growth(secret_rule, unit) < GROWTH_MAX


@pytest.mark.parametrize("module", [assignments, credentials, secrets])
def test_patterns_give_nothing_back(module: ModuleType) -> None:
    """Screening uses no pattern that may be tried in more ways than one."""
    found = [*patterns_of(module), *(each[2] for each in getattr(module, "_SHAPES", ()))]
    assert found
    assert [each for pattern in found for each in loose_repeats(pattern)] == []
