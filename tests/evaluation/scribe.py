"""The member who is dismissed half way: from the next call on nothing of theirs counts."""

import asyncio
from collections.abc import Awaitable

import grpc

from broker.api.v1 import context_service_pb2 as contexts
from broker.api.v1 import record_service_pb2 as pb
from tests.evaluation.calls import Member, RefusedError
from tests.evaluation.model import Known, Model
from tests.evaluation.plan import edit_of, get_of, list_of, revision_of
from tests.evaluation.site import Site
from tests.evaluation.writing import Writer

DENIED = (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_MISSING")


class Scribe:
    """Writes turns for others until ``leave``. ``refused`` counts what was asked in vain."""

    def __init__(self, member: Member, site: Site) -> None:
        """Write as ``member``."""
        self.member = member
        self.refused = 0
        self._site = site
        self._leaving = self._gone = False
        self._written: list[pb.CreateRecordRequest] = []

    async def leave(self, project: str) -> None:
        """Take the authority away while calls are under way."""
        self._leaving = True
        await self._site.dismiss(project, self.member.subject)
        self._gone = True

    async def write(
        self, model: Model, writer: Writer, request: pb.CreateRecordRequest
    ) -> Known | None:
        """Write one turn; ``None`` where it was refused, which it may be once they leave."""
        gone = self._gone
        try:
            known = await writer.write_once(self.member, request)
        except RefusedError as refused:
            model.expect(self._leaving, f"{request.idempotency_key}: a member was refused")
            self._judge(model, refused, request.idempotency_key)
            return None
        model.expect(not gone, f"{request.idempotency_key}: written after authority was gone")
        self._written.append(request)
        return known

    async def knock(self, model: Model, writer: Writer) -> None:
        """Try everything once more, also what they had written and read before."""
        model.expect(self._gone, "the scribe never left")
        known = next(iter(model.known.values()))
        new = pb.CreateRecordRequest()
        new.CopyFrom(self._written[0] if self._written else _like(known))
        new.idempotency_key = "after:dismissal"
        project, run = known.project_id, known.run_id
        asked: dict[str, Awaitable[object]] = {
            "create": self.member.write(new),
            "update": self.member.write(edit_of(known, "edit:after:dismissal")),
            "get": self.member.get(get_of(known)),
            "list": self.member.revisions(list_of(known, 0)),
            "revision": self.member.revision(revision_of(known, 1)),
            "compile": self.member.compile(contexts.CompileContextRequest(scope=known.scope)),
            "compilations": self.member.compilations(
                contexts.ListCompilationsRequest(project_id=project, run_id=run)
            ),
            "compilation": self.member.compilation(
                contexts.GetCompilationRequest(
                    project_id=project, run_id=run, compilation_id="after-dismissal"
                )
            ),
        }
        for each in self._written:
            asked[f"replay of {each.idempotency_key}"] = self.member.write(each)
        outcomes = await asyncio.gather(*asked.values(), return_exceptions=True)
        for what, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, RefusedError):
                self._judge(model, outcome, what)
            else:
                model.expect(False, f"{what} of the dismissed scribe: {outcome!r:.200}")

    def _judge(self, model: Model, refused: RefusedError, where: str) -> None:
        self.refused += 1
        model.expect((refused.code, refused.reason) == DENIED, f"{where}: refused with {refused}")


def _like(known: Known) -> pb.CreateRecordRequest:
    head = known.head
    return pb.CreateRecordRequest(
        scope=known.scope, kind=head.kind, type=head.type, content=head.content
    )
