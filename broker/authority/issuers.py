"""Settings of the issuers whose tokens are accepted. Unsafe ones cannot be constructed."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from broker.authority.syntax import is_label

ALGORITHMS = frozenset({"RS256", "PS256", "ES256", "EdDSA"})
"""What may be configured. Nothing symmetric and not ``none``."""

LEEWAY_S_MAX = 30.0
ISSUER_MAX = 512

_REGISTERED = frozenset({"iss", "sub", "aud", "exp", "iat", "nbf", "jti"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNames:
    """Which claims carry the bounds of a token.

    ``tenant`` and ``purpose`` list alternatives. A token may hold at most one of each (004-12).

    Raises:
        ValueError: a name is blank, registered for something else, or used twice.
    """

    project: str = "project_id"
    run: str = "run_id"
    tenant: tuple[str, ...] = (
        "tenant_id",
        "tid",
        "http://schemas.microsoft.com/identity/claims/tenantid",
    )
    purpose: tuple[str, ...] = ("purpose", "token_purpose")

    def __post_init__(self) -> None:
        """Refuse names that cannot be told apart."""
        names = [self.project, self.run, *self.tenant, *self.purpose]
        if not all(is_label(name) for name in names) or _REGISTERED.intersection(names):
            raise ValueError("claim names must be printable and not registered by RFC 7519")
        if len(set(names)) != len(names):
            raise ValueError("each claim name may be used once")
        if not self.tenant or not self.purpose:
            raise ValueError("name at least one claim for the tenant and one for the purpose")


@dataclass(frozen=True, slots=True)
class KeysFile:
    """A JWK set in a file, read again whenever the file changes."""

    path: Path


@dataclass(frozen=True, slots=True)
class KeysUrl:
    """A JWK set behind https. ``ca_file`` replaces the system's root certificates.

    Raises:
        ValueError: not an absolute https URL, or one with user information or a fragment.
    """

    url: str
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        """Refuse anything but plain https."""
        parts = urlsplit(self.url)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError("the URL of a key set must be absolute and https")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise ValueError("the URL of a key set may hold no user information and no fragment")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedIssuer:
    """One issuer whose tokens are accepted.

    ``issuer`` and ``audience`` are compared byte for byte. ``leeway_s`` is at most 30 seconds.

    Raises:
        ValueError: a setting is unsafe: an algorithm other than RS256, PS256, ES256 and EdDSA, an
            issuer that is no https URL, a blank audience, a leeway out of bounds.
    """

    issuer: str
    audience: str
    algorithms: frozenset[str]
    keys: KeysFile | KeysUrl
    claims: ClaimNames = field(default_factory=ClaimNames)
    leeway_s: float = 10.0

    def __post_init__(self) -> None:
        """Refuse unsafe settings."""
        parts = urlsplit(self.issuer)
        if parts.scheme != "https" or not parts.hostname or not is_label(self.issuer, ISSUER_MAX):
            raise ValueError("an issuer must be an absolute https URL")
        if not is_label(self.audience, ISSUER_MAX):
            raise ValueError("an audience must be 1-512 printable characters")
        if not self.algorithms or not self.algorithms <= ALGORITHMS:
            raise ValueError(f"algorithms must be one or more of {', '.join(sorted(ALGORITHMS))}")
        if not 0.0 <= self.leeway_s <= LEEWAY_S_MAX:
            raise ValueError("leeway_s must be 0 to 30")
