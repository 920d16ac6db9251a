"""Bugs that show only where the store can freeze, lose replies, crash or count."""

from providers.conformance.reference import ReferenceMemoryProvider
from providers.errors import OutcomeUnknownError, ProviderError, ProviderTimeoutError
from providers.model import WriteSet
from providers.requests import (
    CommitOutcome,
    Committed,
    Loaded,
    LoadRequest,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
)
from tests.conformance.linked_harness import LinkedProvider
from tests.conformance.planted.bug import caught_by


@caught_by("ready_when_frozen_times_out")
class WaitsForEver(LinkedProvider):
    async def ready(self, *, timeout: float) -> None:
        await super().ready(timeout=timeout * 1000)


@caught_by("frozen_store_bounds_every_call", "timeout_is_unknown")
class IgnoresTheTimeout(LinkedProvider):
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        return await super().load(request, timeout=timeout + 1000)


@caught_by("frozen_store_bounds_every_call", "timeout_is_unknown")
class LeaksDriverErrors(LinkedProvider):
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        try:
            return await super().load(request, timeout=timeout)
        except ProviderError as error:
            raise ConnectionError("the driver's own words") from error


@caught_by("timeout_is_unknown", "replay_after_lost_reply_and_restart")
class CallsUnknownFailed(LinkedProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        try:
            return await super().commit(write_set, timeout=timeout)
        except OutcomeUnknownError as error:
            raise ProviderTimeoutError("no reply") from error


@caught_by("timeout_is_unknown", "replay_after_lost_reply_and_restart")
class CallsUnknownCommitted(LinkedProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        try:
            return await super().commit(write_set, timeout=timeout)
        except OutcomeUnknownError:
            return Committed()


@caught_by("load_and_commit_are_one_round_trip")
class SendsTwice(LinkedProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        outcome = await super().commit(write_set, timeout=timeout)
        await super().commit(write_set, timeout=timeout)
        return outcome


@caught_by(
    "load_and_commit_are_one_round_trip", "page_is_one_round_trip", "search_is_one_round_trip"
)
class ReadsTwice(LinkedProvider):
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        await super().load(request, timeout=timeout)
        return await super().load(request, timeout=timeout)

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        await super().revisions(request, timeout=timeout)
        return await super().revisions(request, timeout=timeout)

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        await super().search(request, timeout=timeout)
        return await super().search(request, timeout=timeout)


@caught_by("invalid_write_set_is_never_sent")
class LetsTheStoreFindOut(LinkedProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        model = ReferenceMemoryProvider.commit
        return await self._link.carry(
            lambda: model(self, write_set, timeout=timeout), timeout=timeout
        )


@caught_by("recovers_after_restart", "acknowledged_writes_survive_a_crash")
class LosesEverythingInACrash(LinkedProvider):
    async def ready(self, *, timeout: float) -> None:
        await super().ready(timeout=timeout)
        if self._link.server.crashes:
            self._store.shelves.clear()
