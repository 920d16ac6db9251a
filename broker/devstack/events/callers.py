"""Who calls: the token for the Events service, and the one for knowledge beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from broker.authority.faults import Fault
from broker.authority.issuers import TrustedIssuer
from broker.authority.tokens import TokenVerifier
from broker.devstack.events.refusal import Refusal, RefusalError
from broker.domain.call import Caller
from broker.domain.errors import KeysUnavailableError, TokenInvalidError

Metadata = Iterable[tuple[str, str | bytes]]

_MALFORMED = {
    Fault.AUTHORIZATION.value: Refusal.TOKEN_MISSING,
    Fault.TENANT_SELECTOR.value: Refusal.TENANT_SELECTOR,
}


@dataclass(frozen=True, slots=True)
class Callers:
    """One person by two tokens, which may be the same one."""

    events: Caller
    knowledge: Caller

    @property
    def each(self) -> tuple[Caller, Caller]:
        """Both."""
        return self.events, self.knowledge


class CallerVerifier:
    """Verifies the tokens of each call: by signature, issuer, time, and each by its audience."""

    def __init__(self, issuer: TrustedIssuer, knowledge_audience: str) -> None:
        """Trusts one issuer.

        Args:
            issuer: The issuer, with the audience of this Events service.
            knowledge_audience: The audience of the token that is handed on to the broker.
        """
        self._events = TokenVerifier([issuer])
        self._knowledge = TokenVerifier([replace(issuer, audience=knowledge_audience)])

    async def verify(self, metadata: Metadata) -> Callers:
        """Returns who calls.

        Raises:
            RefusalError: A token is missing, repeated, malformed or does not count; one is bound
                to a purpose; or the two are not of one person.
        """
        entries = [(name.lower(), value) for name, value in metadata]
        bearer, tenant = _values(entries, "authorization"), _values(entries, "x-tenant")
        separate = _values(entries, "x-knowledge-authorization")
        events = await _verified(self._events, bearer, tenant, Refusal.TOKEN_REJECTED)
        knowledge = await _verified(
            self._knowledge, separate or bearer, tenant, Refusal.CALLER_INVALID
        )
        same = (events.issuer, events.subject) == (knowledge.issuer, knowledge.subject)
        if not same or events.purpose is not None or knowledge.purpose is not None:
            raise RefusalError(Refusal.CALLER_INVALID)
        return Callers(events, knowledge)

    async def close(self) -> None:
        """Stops looking for keys."""
        await self._events.aclose()
        await self._knowledge.aclose()


async def _verified(
    verifier: TokenVerifier, bearer: list[str | bytes], tenant: list[str | bytes], refused: Refusal
) -> Caller:
    try:
        return await verifier.verify(bearer, tenant)
    except KeysUnavailableError as error:
        raise RefusalError(Refusal.KEYS_UNAVAILABLE) from error
    except TokenInvalidError as error:
        raise RefusalError(_MALFORMED.get(error.message, refused)) from error


def _values(entries: list[tuple[str, str | bytes]], name: str) -> list[str | bytes]:
    return [value for key, value in entries if key == name]
