"""The use cases of EffectService."""

from typing import Final

from broker.domain.authority import EFFECTS, Authorized, Need, Permission
from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.delivery import DeliveryOutcome
from broker.domain.effects import (
    EffectReceipt,
    ListPendingEffects,
    NamedEffect,
    PendingListed,
    check_its_caller,
    receipt_of,
)
from broker.domain.errors import (
    AuthorityChangedError,
    EffectNotFoundError,
    PageTokenInvalidError,
    PermissionMissingError,
    TokenBindingMismatchError,
    TokenPurposeBoundError,
)
from broker.domain.fields import Violations, check_identifier, refuse_if_any
from broker.domain.paging import (
    check_token_syntax,
    digest,
    page_limit,
    page_token,
    position_of,
)
from broker.domain.ports import CallersAuthorityPort, RelayPort, UnscopedEffectsPort
from broker.domain.requests import ScopeInput
from broker.services.access import Access, AccessPath
from providers.capabilities import Capability
from providers.deliveries import EffectRequest, PendingEffects, PendingEffectsRequest

LIST: Final = "ListPendingEffects"
WRITES: Final = Need(frozenset({Permission.WRITE_PROJECTS}))

_NOT_THEIRS: Final = (PermissionMissingError, TokenBindingMismatchError, TokenPurposeBoundError)


class Effects:
    """Reads and delivers accepted effects behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, relay: RelayPort) -> None:
        """Take the path of checks and what delivers."""
        self._access = access
        self._relay = relay

    async def get(self, call: Call, named: NamedEffect) -> EffectReceipt:
        """Return a receipt to the caller who accepted (004-81)."""
        _, receipt = await self._found(call, named)
        return receipt

    async def deliver(self, call: Call, named: NamedEffect) -> DeliveryOutcome:
        """Deliver a receipt for the caller who accepted (004-75)."""
        access, _ = await self._found(call, named)
        return await self._relay.deliver(call, access.bound, _request(access, named))

    async def list_pending(self, call: Call, request: ListPendingEffects) -> PendingListed:
        """Return undelivered effects of a run, whoever accepted them (004-73)."""
        _check_run(request.project_id, request.run_id)
        check_token_syntax(request.page_token)
        violations: Violations = []
        limit = page_limit(violations, request.page_size)
        refuse_if_any(violations)
        authorized = await self._authorize(call, request.project_id, request.run_id)
        bound_to = digest(LIST, authorized.tenant_id, request.project_id, request.run_id)
        after = _position(request.page_token, bound_to)
        access = await self._access.enter(authorized, Capability.DELIVERY, EFFECTS, create=False)
        wanted = PendingEffectsRequest(
            project=access.project, run_id=request.run_id, after_sequence=after, limit=limit
        )
        page = await self._access.read(
            access, lambda provider, timeout: provider.pending_effects(wanted, timeout=timeout)
        )
        return PendingListed(page.effects, _next_token(page, bound_to))

    async def _found(self, call: Call, named: NamedEffect) -> tuple[Access, EffectReceipt]:
        _check_run(named.project_id, named.run_id)
        authorized = await self._authorize(call, named.project_id, named.run_id)
        _check_receipt_id(named.receipt_id)
        access = await self._access.enter(authorized, Capability.DELIVERY, EFFECTS, create=False)
        wanted = _request(access, named)
        found = await self._access.read(
            access, lambda provider, timeout: provider.effect(wanted, timeout=timeout)
        )
        if found.effect is None:
            raise EffectNotFoundError
        receipt = receipt_of(found.effect)
        check_its_caller(
            receipt,
            call.caller,
            authorized.tenant_id,
            RunScope(named.project_id, named.run_id),
        )
        return access, receipt

    async def _authorize(self, call: Call, project_id: str, run_id: str) -> Authorized:
        return await self._access.authorize(call, ScopeInput(project_id, run_id, ""), EFFECTS)


class UnscopedEffectReads:
    """Reads receipts without naming their run, for Events services of the release before (004-81).

    The caller's tenant is the owner's word; the look-up compares tenant, issuer and subject; then
    the owner is asked about the project that was found. Every refusal is EFFECT_NOT_FOUND.
    """

    def __init__(
        self, authority: CallersAuthorityPort, effects: UnscopedEffectsPort | None
    ) -> None:
        """Take who is asked, and the stores to look in; ``None``: this is off."""
        self._authority = authority
        self._effects = effects

    async def get(self, call: Call, receipt_id: str) -> EffectReceipt:
        """Return a receipt to the caller who accepted."""
        if self._effects is None:
            raise EffectNotFoundError
        try:
            return await self._get(call, receipt_id, self._effects)
        except _NOT_THEIRS as refusal:
            raise EffectNotFoundError from refusal

    async def _get(
        self, call: Call, receipt_id: str, effects: UnscopedEffectsPort
    ) -> EffectReceipt:
        tenant_id = await self._authority.check_caller(call)
        _check_receipt_id(receipt_id)
        try:
            effect = await effects.find(
                tenant_id, receipt_id, call.caller, timeout=call.remaining()
            )
        except Exception:
            await self._recheck(call, tenant_id)
            raise
        if effect is None:
            await self._recheck(call, tenant_id)
            raise EffectNotFoundError
        receipt = receipt_of(effect)
        scope = RunScope(receipt.project_id, receipt.run_id)
        authorized = await self._authority.check(call, ProjectScope(scope.project_id), WRITES)
        check_its_caller(receipt, call.caller, authorized.tenant_id, scope)
        return receipt

    async def _recheck(self, call: Call, tenant_id: str) -> None:
        """Ask about the caller again: no outcome of a store is told before that."""
        if await self._authority.check_caller(call) != tenant_id:
            raise AuthorityChangedError("the caller's tenant changed during the call")


def _request(access: Access, named: NamedEffect) -> EffectRequest:
    return EffectRequest(project=access.project, run_id=named.run_id, receipt_id=named.receipt_id)


def _check_run(project_id: str, run_id: str) -> None:
    violations: Violations = []
    check_identifier(violations, "project_id", project_id)
    check_identifier(violations, "run_id", run_id)
    refuse_if_any(violations)


def _check_receipt_id(receipt_id: str) -> None:
    violations: Violations = []
    check_identifier(violations, "receipt_id", receipt_id)
    refuse_if_any(violations)


def _position(token: str, bound_to: str) -> int:
    match position_of(token, bound_to):
        case None:
            return 0
        case [int(sequence)] if sequence >= 1:
            return sequence
        case _:
            raise PageTokenInvalidError


def _next_token(page: PendingEffects, bound_to: str) -> str:
    last = page.effects[-1].effect if page.more else None
    return page_token(bound_to, [last.sequence]) if last is not None else ""
