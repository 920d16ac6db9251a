"""Turns the metadata of a call into its verified caller."""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.authority import jws
from broker.authority.claims import Claims, check_claims, read_claims
from broker.authority.faults import Fault, refusal
from broker.authority.issuers import TrustedIssuer
from broker.authority.jwk import VerificationKey
from broker.authority.keys import KeySet, KeySource, key_source
from broker.authority.signatures import SignatureCache
from broker.domain.call import Caller
from broker.domain.fields import is_identifier

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/=-]+)\Z")


@dataclass(frozen=True, slots=True)
class _Accepted:
    """An issuer's settings and the source of its keys."""

    settings: TrustedIssuer
    keys: KeySource


class TokenVerifier:
    """Verifies the bearer tokens of the issuers that are trusted.

    ``wall`` gives seconds since 1970 for the times in tokens; ``monotonic`` measures the ages of
    keys and of cached signatures.

    Raises:
        ValueError: no issuer, or the same one twice.
        OSError: a file of root certificates cannot be read.
    """

    def __init__(
        self,
        issuers: Sequence[TrustedIssuer],
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._accepted = {
            settings.issuer: _Accepted(settings, key_source(settings.keys, monotonic))
            for settings in issuers
        }
        if not issuers or len(self._accepted) != len(issuers):
            raise ValueError("name at least one issuer, and each once")
        self._wall = wall
        self._cache = SignatureCache(monotonic)

    async def verify(
        self, authorization: Sequence[str | bytes], tenant: Sequence[str | bytes]
    ) -> Caller:
        """Verify the token of one call. Bytes, from binary metadata, are never acceptable.

        Args:
            authorization: every value of ``authorization`` in the call's metadata (004-03).
            tenant: every value of ``x-tenant`` (004-04).

        Raises:
            TokenInvalidError: no usable token. The message names the cause and holds nothing of
                the token. Not retryable.
            KeysUnavailableError: the issuer's keys are unreachable and too old. Retryable.
        """
        bearer, token = _token(authorization)
        selector = _selector(tenant)
        claims = await self._claims(token)
        return Caller(
            issuer=claims.issuer,
            subject=claims.subject,
            bearer=bearer,
            tenant_selector=selector,
            tenant_claim=claims.tenant,
            bound_project_id=claims.project,
            bound_run_id=claims.run,
            purpose=claims.purpose,
        )

    async def load(self) -> None:
        """Get the keys of every issuer; for readiness.

        Raises:
            KeysUnavailableError: those of one cannot be had. Retryable.
        """
        for accepted in self._accepted.values():
            await accepted.keys.current()

    async def aclose(self) -> None:
        """Stop fetching keys."""
        for accepted in self._accepted.values():
            await accepted.keys.aclose()

    async def _claims(self, token: str) -> Claims:
        if len(token) > jws.TOKEN_MAX:
            raise refusal(Fault.TOO_LARGE)
        digest = hashlib.sha256(token.encode("ascii")).digest()
        known = self._cache.find(digest)
        if known is not None:
            accepted = self._accepted[known.claims.issuer]
            keys = await accepted.keys.current()
            if keys.generation == known.generation:
                check_claims(known.claims, accepted.settings, self._wall())
                return known.claims
        return await self._claims_afresh(token, digest)

    async def _claims_afresh(self, token: str, digest: bytes) -> Claims:
        unverified = jws.take_apart(token)
        accepted = self._issuer(unverified)
        if unverified.algorithm not in accepted.settings.algorithms:
            raise refusal(Fault.ALGORITHM)
        keys, key = await _key(accepted.keys, unverified.key_id)
        if key is None or unverified.algorithm not in key.algorithms:
            raise refusal(Fault.KEY)
        jws.verify(unverified, key)
        claims = read_claims(unverified.payload, accepted.settings)
        check_claims(claims, accepted.settings, self._wall())
        self._cache.keep(digest, claims, keys.generation)
        return claims

    def _issuer(self, unverified: jws.Unverified) -> _Accepted:
        named = unverified.payload.get("iss")
        accepted = self._accepted.get(named) if isinstance(named, str) else None
        if accepted is None:
            raise refusal(Fault.ISSUER)
        return accepted


async def _key(source: KeySource, key_id: str) -> tuple[KeySet, VerificationKey | None]:
    keys = await source.current()
    if key_id not in keys.keys:
        keys = await source.renewed()
    return keys, keys.keys.get(key_id)


def _token(values: Sequence[str | bytes]) -> tuple[str, str]:
    match values:
        case [str(value)] if found := _BEARER.match(value):
            return found[0], found[1]
        case _:
            raise refusal(Fault.AUTHORIZATION)


def _selector(values: Sequence[str | bytes]) -> str | None:
    match values:
        case []:
            return None
        case [str(value)] if is_identifier(value):
            return value
        case _:
            raise refusal(Fault.TENANT_SELECTOR)
