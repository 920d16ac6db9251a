"""Adapters that do less: what they do not declare has a reason, and is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from providers.capabilities import Capability
from providers.conformance.declaration import Declaration
from providers.conformance.expect import LawBrokenError
from providers.conformance.harness import Bench, Harness
from providers.conformance.law import Law, run
from providers.conformance.laws.negotiation import (
    negotiate_reports_exact_capabilities,
    undeclared_capability_is_refused,
)
from providers.conformance.reference import ReferenceMemoryProvider
from providers.interface import IMemoryProvider
from providers.requests import Negotiated
from tests.conformance import reference_harness
from tests.conformance.reference_harness import ReferenceBench

ABSENT = dict.fromkeys((Capability.SEARCH, Capability.COMPOSE), "this one does not go so far")
LESSER = replace(
    reference_harness.DECLARATION,
    capabilities=frozenset(Capability) - set(ABSENT),
    absent_capabilities=ABSENT,
)


class Lesser(ReferenceMemoryProvider):
    """Neither searches nor composes."""

    search = IMemoryProvider.search
    candidates = IMemoryProvider.candidates

    async def negotiate(self, *, timeout: float) -> Negotiated:
        whole = await super().negotiate(timeout=timeout)
        return replace(whole, capabilities=LESSER.capabilities, absent=ABSENT)


class LesserBench(ReferenceBench):
    """A bench that says what is absent."""

    @property
    def declaration(self) -> Declaration:
        return LESSER


class LesserHarness(Harness):
    """Opens benches on adapters that do less."""

    def __init__(self, make: type[ReferenceMemoryProvider]) -> None:
        self._make = make

    @property
    def declaration(self) -> Declaration:
        return LESSER

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bench]:
        yield LesserBench(self._make)


class AnswersAllTheSame(Lesser):
    candidates = ReferenceMemoryProvider.candidates


class GivesNoReasons(Lesser):
    async def negotiate(self, *, timeout: float) -> Negotiated:
        return replace(await super().negotiate(timeout=timeout), absent={})


class SaysThatItDoesAll(Lesser):
    negotiate = ReferenceMemoryProvider.negotiate


@pytest.mark.parametrize(
    "law", [undeclared_capability_is_refused, negotiate_reports_exact_capabilities]
)
async def test_doing_less_is_no_fault(law: Law) -> None:
    """004-22, 004-27: what is absent, with a reason, is refused."""
    await run(law, LesserHarness(Lesser))


async def test_answering_what_is_absent_is_caught() -> None:
    """004-22: G-6 is judged although no backend here leaves a capability out."""
    with pytest.raises(LawBrokenError):
        await run(undeclared_capability_is_refused, LesserHarness(AnswersAllTheSame))


@pytest.mark.parametrize("provider", [GivesNoReasons, SaysThatItDoesAll])
async def test_absence_without_a_word_is_caught(provider: type[Lesser]) -> None:
    """004-24, 004-27: a capability is declared, or absent with a reason."""
    with pytest.raises(LawBrokenError):
        await run(negotiate_reports_exact_capabilities, LesserHarness(provider))
