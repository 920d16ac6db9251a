"""Answers the three questions of the contract from the file as it is at that moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import grpc
import jwt

from broker.devstack import tokens
from broker.devstack.owner import answers, document, identity, rules
from broker.devstack.owner.model import Document
from broker.devstack.owner.refusal import RefusalError, invalid, unavailable
from broker.devstack.owner.remembered import Remembered
from broker.devstack.owner.rules import Caller, Held
from broker.devstack.owner.watched import FileUnusableError, WatchedFile
from broker.owners.v1 import projects_config_service_pb2 as pb
from broker.owners.v1 import projects_config_service_pb2_grpc as pb_grpc

RUN_IDS_MAX = 500

Context = grpc.aio.ServicerContext[Any, Any]
Answer = TypeVar("Answer")
Nothing = TypeVar("Nothing")
_Run = pb.GetRunAuthorityRequest | pb.StreamRunAuthorityRequest


class ProjectsConfigServicer(pb_grpc.ProjectsConfigServiceServicer):
    """The service. Each call reads the file once, so that its answer is of one snapshot.

    Attributes:
        calls: How often each method was called, refused calls included.
    """

    def __init__(self, document_file: Path, jwks_file: Path, issuer: str = tokens.ISSUER) -> None:
        """Describes the service; the files are read with each call.

        Args:
            document_file: The tenants, projects, members, runs and catalog, as YAML.
            jwks_file: The keys that tokens are verified with.
            issuer: Whose tokens count.
        """
        self.calls: Counter[str] = Counter()
        self._document = WatchedFile(document_file, document.parse)
        self._keys = WatchedFile(jwks_file, identity.read_keys)
        self._verifier = identity.Verifier(issuer)
        self._remembered = Remembered()

    async def GetRunAuthority(
        self, request: pb.GetRunAuthorityRequest, context: Context
    ) -> pb.GetRunAuthorityResponse:
        """Authority and the selection of one run."""
        answer = partial(self._run, request, context)
        return self._give("GetRunAuthority", context, answer, pb.GetRunAuthorityResponse())

    async def StreamRunAuthority(
        self, requests: AsyncIterator[pb.StreamRunAuthorityRequest], context: Context
    ) -> AsyncIterator[pb.StreamRunAuthorityResponse]:
        """Authority and the selection of one run, for one question after the other."""
        async for request in requests:
            answer = partial(self._run, request, context)
            given = self._give("StreamRunAuthority", context, answer, None)
            if given is None:
                return
            yield pb.StreamRunAuthorityResponse(authority=given, number=request.number)

    async def GetProjectAuthority(
        self, request: pb.GetProjectAuthorityRequest, context: Context
    ) -> pb.GetProjectAuthorityResponse:
        """Authority and the selections of some runs."""

        def answer() -> pb.GetProjectAuthorityResponse:
            run_ids = [_checked(run_id) for run_id in request.run_ids]
            if len(run_ids) > RUN_IDS_MAX or len(set(run_ids)) != len(run_ids):
                raise invalid(f"run_ids must be at most {RUN_IDS_MAX} and differ")
            project = _enter(self._asked(context), request.project_id)
            entries = [
                pb.RunSelectionEntry(run_id=run_id, selection=project.selection(run_id))
                for run_id in run_ids
            ]
            return pb.GetProjectAuthorityResponse(context=project.context(), selections=entries)

        return self._give("GetProjectAuthority", context, answer, pb.GetProjectAuthorityResponse())

    async def GetCallerAuthority(
        self, request: pb.GetCallerAuthorityRequest, context: Context
    ) -> pb.GetCallerAuthorityResponse:
        """The caller's grants everywhere in their tenant."""

        def answer() -> pb.GetCallerAuthorityResponse:
            asked = self._asked(context)
            caller = asked.caller()
            bound = caller.identity.bound_project_id
            projects = caller.tenant.projects if bound is None else [bound]
            held = rules.grants(asked.now, caller, projects)
            return pb.GetCallerAuthorityResponse(context=answers.context(caller, held))

        return self._give("GetCallerAuthority", context, answer, pb.GetCallerAuthorityResponse())

    def _run(self, request: _Run, context: Context) -> pb.GetRunAuthorityResponse:
        asked = self._asked(context)
        files, key = (asked.keys, asked.now), (asked.shown, request.project_id, request.run_id)
        return self._remembered.answer(files, key, partial(_run_authority, asked, request))

    def _give(
        self, method: str, context: Context, answer: Callable[[], Answer], nothing: Nothing
    ) -> Answer | Nothing:
        self.calls[method] += 1
        try:
            return answer()
        except FileUnusableError as error:
            refusal = unavailable(str(error))
        except RefusalError as error:
            refusal = error
        context.set_code(refusal.code)
        context.set_details(refusal.message)
        return nothing

    def _asked(self, context: Context) -> _Asked:
        keys, now = self._keys.current(), self._document.current()
        shown = identity.shown(context.invocation_metadata() or ())
        return _Asked(now, keys, shown, self._verifier.claims(shown.token, keys))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call whose token counts, and the files as they were when it came."""

    now: Document
    keys: Mapping[str, jwt.PyJWK]
    shown: identity.Shown
    claims: Mapping[str, Any]

    def caller(self) -> Caller:
        return rules.enter_tenant(self.now, identity.identify(self.claims, self.shown.selectors))


class _Project:
    """A project that the caller knows."""

    def __init__(self, now: Document, caller: Caller, held: list[Held], project_id: str) -> None:
        self._now, self._caller, self._held = now, caller, held
        self._id = project_id

    def context(self) -> pb.AuthorizationContext:
        return answers.context(self._caller, self._held)

    def selection(self, run_id: str) -> pb.RunSelection | None:
        if not rules.may_read_selection(self._caller, self._held, run_id):
            return None
        return answers.selection(self._now, self._caller.tenant_id, self._id, run_id)


def _enter(asked: _Asked, project_id: str) -> _Project:
    caller = asked.caller()
    held = rules.grants(asked.now, caller, [_checked(project_id)])
    rules.require_project(caller, held, project_id)
    return _Project(asked.now, caller, held, project_id)


def _run_authority(asked: _Asked, request: _Run) -> pb.GetRunAuthorityResponse:
    project = _enter(asked, request.project_id)
    return pb.GetRunAuthorityResponse(
        context=project.context(), selection=project.selection(_checked(request.run_id))
    )


def _checked(value: str) -> str:
    if not identity.is_identifier(value):
        raise invalid("ids are 1-256 ASCII letters, digits, `. _ : -`")
    return value
