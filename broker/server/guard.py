"""The inner layers: deadline, token, admission. What passes them may be served."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

from broker.domain.call import Call, Caller
from broker.domain.errors import (
    DeadlineExceededError,
    FieldInvalidError,
    OverloadedError,
    Violation,
)
from broker.server.admission import Admission
from broker.server.exchange import CURRENT, EVENTS_KEY, Exchange, MetadataValue, Step
from broker.server.methods import Line
from broker.telemetry.metrics import Metrics


class TokenVerifier(Protocol):
    """Tells who calls, from the token alone (004-02, 004-03)."""

    async def verify(
        self, authorization: Sequence[MetadataValue], tenant: Sequence[MetadataValue]
    ) -> Caller:
        """Return the caller.

        Args:
            authorization: every value of ``authorization``, and of its binary twin as bytes.
            tenant: every value of ``x-tenant``, and of its binary twin as bytes.

        Raises:
            TokenInvalidError: not exactly one well-formed, valid token, or more than one tenant, or
                bytes among the values. Not retryable.
            KeysUnavailableError: retryable.
        """
        ...


class Deadlines:
    """Gives every call a time to end: its method's longest time, or the caller's where sooner."""

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call in time.

        Raises:
            DeadlineExceededError: the time ran out; its outcome is unknown once a commit was sent.
        """
        allowed = exchange.policy.deadline_s
        remaining = exchange.context.time_remaining()
        if remaining is not None and remaining < allowed:
            allowed = remaining
        exchange.deadline = asyncio.get_running_loop().time() + allowed
        timeout = asyncio.timeout_at(exchange.deadline)
        try:
            async with timeout:
                return await proceed(exchange)
        except TimeoutError as error:
            if not timeout.expired():  # a driver's own time-out, not ours
                raise
            raise DeadlineExceededError(outcome_unknown=exchange.commit_sent) from error


class Authenticated:
    """Lets nobody in without a verified token, and makes the ``Call`` (004-01..04)."""

    def __init__(self, verifier: TokenVerifier) -> None:
        """Ask ``verifier``."""
        self._verifier = verifier

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call on behalf of its verified caller.

        Raises:
            What ``TokenVerifier.verify`` raises.
            FieldInvalidError: a credential for another service was sent, which no method takes.
        """
        headers = exchange.headers
        caller = await self._verifier.verify(headers.authorization, headers.tenant)
        foreign = headers.foreign_credential
        if headers.events and not exchange.policy.takes_events_token:
            foreign = EVENTS_KEY
        if foreign is not None:
            raise FieldInvalidError((Violation(foreign, "must not be sent to this method"),))
        deadline = exchange.deadline
        if deadline is None:  # the deadline layer stands outside of this one
            raise RuntimeError("a call without a deadline")
        call = exchange.call = Call(
            caller, exchange.request_id, deadline, events_authorization=tuple(headers.events)
        )
        CURRENT.set(call)  # a call has a task, and so a context, of its own
        return await proceed(exchange)


class Admitted:
    """Lets a bounded number of calls run; the rest wait inside their deadlines."""

    def __init__(self, lines: Mapping[Line, Admission], metrics: Metrics) -> None:
        """Take slots from the line each method waits in."""
        self._lines = lines
        self._metrics = metrics
        self.delivering = 0

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call in a slot. ``delivering`` counts those that may give theirs away.

        Raises:
            OverloadedError: no waiting place was left. Retryable.
        """
        if exchange.call is None:  # the token layer stands outside of this one
            raise RuntimeError("a call without a caller")
        try:
            line = self._lines[exchange.policy.line]
            slot = await line.enter(_share(exchange.call.caller), exchange.policy.cost)
        except OverloadedError as error:
            self._metrics.admission_refused(error.metadata["limit"])
            raise
        exchange.call.give_place = slot.release
        delivers = exchange.policy.takes_events_token
        self.delivering += delivers
        try:
            return await proceed(exchange)
        finally:
            self.delivering -= delivers
            slot.release()


def _share(caller: Caller) -> Hashable:
    """Return whose share of the process a call takes: the token's tenant, else its subject."""
    if caller.tenant_claim is not None:
        return caller.issuer, "tenant", caller.tenant_claim
    return caller.issuer, "subject", caller.subject
