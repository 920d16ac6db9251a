"""The use cases of ProposalService."""

from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import Violation
from broker.domain.fields import (
    IDEMPOTENCY_KEY_MAX,
    IMPORTANCE_DEFAULT,
    TITLE_MAX,
    Violations,
    check_identifier,
    check_positive,
    check_scope,
    checked_content,
    refuse_if_any,
)
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.ports import RelayPort
from broker.domain.proposals import (
    CreateProposal,
    Promoted,
    PromoteProposal,
    promotable,
    promoted,
    proposed,
)
from broker.domain.requests import Written
from broker.memory.admission import has_flag, marked, retold, screened
from broker.memory.holding import keeping
from broker.memory.keys import content_key
from broker.services.access import Access, AccessPath, Write
from broker.services.head_writer import HeadWrite, HeadWriter, heads_left
from providers.capabilities import Capability
from providers.deliveries import EffectRequest
from providers.errors import StoredDataInvalidError
from providers.model import Content, HeadPut, ReceiptKey, RevisionRef, WriteSet
from providers.requests import Loaded, LoadRequest

CREATE: Final = "CreateProposal"
PROMOTE: Final = "PromoteProposal"


class Proposals:
    """Creates and promotes proposals behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, writer: HeadWriter, relay: RelayPort) -> None:
        """Take the path of checks, what writes heads, and what delivers."""
        self._access = access
        self._writer = writer
        self._relay = relay

    async def create(self, call: Call, request: CreateProposal) -> Written:
        """Create a proposal (004-46, 004-51)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        said = _checked_create(request)
        content = screened(said)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(_loaded: Loaded, _second: Authorized) -> HeadPut:
            return marked(
                proposed(
                    agent_id=request.scope.agent_id,
                    run_id=request.scope.run_id,
                    content=content,
                    stamp=self._writer.stamp(call),
                )
            )

        return await self._writer.write(
            access,
            HeadWrite(
                method=CREATE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields={"content": said},
                decide=decide,
                keys=(content_key(request.scope.agent_id, None, content.content),),
            ),
        )

    async def promote(self, call: Call, request: PromoteProposal) -> Promoted:
        """Turn a proposal into a decision, then try to deliver that (004-70, 71, 75)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        _check_promote(request)
        access = await self._access.enter(authorized, Capability.PROMOTE, create=False)
        settled = await self._access.write(access, self._promotion(access, request))
        receipt_id = settled.receipt.effect_id
        if receipt_id is None:
            raise StoredDataInvalidError("the receipt of a promotion names no effect")
        proposal, decision = heads_left(settled)
        delivery = await self._relay.deliver(
            call,
            access.bound,
            EffectRequest(
                project=access.project, run_id=request.scope.run_id, receipt_id=receipt_id
            ),
        )
        return Promoted(
            project_id=request.scope.project_id,
            proposal=proposal,
            decision=decision,
            receipt_id=receipt_id,
            replayed=settled.write_set is None,
            delivery=delivery,
        )

    def _promotion(self, access: Access, request: PromoteProposal) -> Write:
        key = ReceiptKey(access.call.caller.actor_fingerprint, request.idempotency_key)
        fields = {
            "proposal_id": request.proposal_id,
            "expected_revision": request.expected_revision,
        }
        request_print = fingerprint(PROMOTE, request.scope, fields)

        def decide(loaded: Loaded, second: Authorized) -> WriteSet | LoadRequest:
            proposal = promotable(loaded.heads.get(request.proposal_id), request)
            promotion = promoted(
                proposal,
                second,
                sequence=loaded.stream + 1,
                stamp=self._writer.stamp(access.call),
            )
            said = proposal.current
            decision = retold(promotion.decision, screened(said.content, said.facet))
            heads = (promotion.proposal, marked(decision, told=has_flag(said)))
            receipt = receipt_for(
                key=key,
                method=PROMOTE,
                fingerprint=request_print,
                refs=tuple(
                    RevisionRef(put.record.current.record_id, put.record.current.revision)
                    for put in heads
                ),
                create_time=promotion.effect.accept_time,
                effect_id=promotion.effect.receipt_id,
            )
            write_set = WriteSet(
                project=access.project, receipt=receipt, heads=heads, effect=promotion.effect
            )
            return keeping(write_set, loaded)

        return Write(
            method=PROMOTE,
            key=key,
            fingerprint=request_print,
            load=LoadRequest(
                project=access.project,
                receipt=key,
                record_ids=(request.proposal_id,),
                stream_run_id=request.scope.run_id,
            ),
            decide=decide,
        )


def _checked_create(request: CreateProposal) -> Content:
    violations: Violations = []
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    content = checked_content(violations, request.content, importance_default=IMPORTANCE_DEFAULT)
    if not request.content.title.strip():
        violations.append(Violation("title", f"must be 1-{TITLE_MAX} code points, not blank"))
    refuse_if_any(violations)
    return content


def _check_promote(request: PromoteProposal) -> None:
    violations: Violations = []
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    check_identifier(violations, "proposal_id", request.proposal_id)
    check_positive(violations, "expected_revision", request.expected_revision)
    refuse_if_any(violations)
