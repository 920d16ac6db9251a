"""The one look-up without a project: the native adapter's, by tenant, receipt, issuer, subject."""

from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from providers.conformance import specimens
from providers.conformance.delivery_steps import deliver, leased, release
from providers.conformance.reference import ReferenceMemoryProvider
from providers.deliveries import (
    EffectFound,
    UnscopedEffectFound,
    UnscopedEffectRequest,
    UnscopedEffects,
)
from providers.errors import ProviderClosedError, StoredDataInvalidError
from providers.model import AcceptedEffect, ProjectKey
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed

PROJECT = ProjectKey("t1", "p1")
SECONDS = 10.0
NONE = UnscopedEffectFound(None, EffectFound(None))
RECEIPT: dict[str, str | int | None] = {
    "issuer": "https://id.example.test/",
    "subject": "olga",
    "record_id": "d1",
}


async def accept(
    provider: PostgresMemoryProvider, project: ProjectKey = PROJECT, **changes: Any
) -> AcceptedEffect:
    """Accept an effect with this receipt id, for whom the receipt says."""
    effect = replace(specimens.effect(1), receipt_id="e-1", receipt=RECEIPT, **changes)
    write = specimens.write(project, effect=effect)
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    return effect


async def look(provider: PostgresMemoryProvider, **changes: str) -> UnscopedEffectFound:
    asked = {
        "tenant_id": "t1",
        "receipt_id": "e-1",
        "issuer": "https://id.example.test/",
        "subject": "olga",
    }
    request = UnscopedEffectRequest(**{**asked, **changes})
    return await provider.unscoped_effect(request, timeout=SECONDS)


async def test_an_effect_is_found_without_its_project(provider: PostgresMemoryProvider) -> None:
    """004-81: with its project and all that ``effect`` tells of it."""
    effect = await accept(provider)
    assert await look(provider) == UnscopedEffectFound("p1", EffectFound(effect))
    token = await leased(provider, PROJECT, effect)
    await release(provider, PROJECT, effect, token, code="late")
    assert await look(provider) == UnscopedEffectFound("p1", EffectFound(effect, last_code="late"))
    (answer,) = await deliver(provider, PROJECT, effect)
    wanted = UnscopedEffectFound("p1", EffectFound(effect, True, None, answer))
    assert await look(provider) == wanted


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": "t2"},
        {"tenant_id": "T1"},
        {"tenant_id": "t%"},
        {"receipt_id": "E-1"},
        {"receipt_id": "e-1 "},
        {"receipt_id": "e_1"},
        {"issuer": "https://id.example.test"},
        {"issuer": "HTTPS://id.example.test/"},
        {"issuer": ""},
        {"subject": "Olga"},
        {"subject": "olg"},
        {"subject": "%"},
        {"subject": "olga\0"},
        {"receipt_id": "\0"},
        {"tenant_id": "\ud800"},
    ],
)
async def test_whose_it_is_not_finds_nothing(
    provider: PostgresMemoryProvider, changes: dict[str, str]
) -> None:
    """004-81: tenant, receipt, issuer and subject are each compared byte for byte."""
    await accept(provider)
    assert await look(provider, **changes) == NONE


async def test_a_receipt_without_issuer_or_subject_is_nobodys(
    provider: PostgresMemoryProvider,
) -> None:
    """004-81: what is not said does not match, whatever is asked."""
    bare: tuple[dict[str, str | int | None], ...] = (
        {"subject": "olga"},
        {"issuer": None, "subject": "olga"},
    )
    for number, left in enumerate(bare):
        await accept(provider, ProjectKey("t1", f"p{number}"))
        effect = replace(specimens.effect(1), receipt_id=f"bare-{number}", receipt=left)
        write = specimens.write(
            ProjectKey("t1", "bare"), effect=replace(effect, sequence=number + 1)
        )
        assert await provider.commit(write, timeout=SECONDS) == Committed()
        for issuer in ("", "null", "None"):
            assert await look(provider, receipt_id=f"bare-{number}", issuer=issuer) == NONE


async def test_of_two_projects_the_first_is_returned(provider: PostgresMemoryProvider) -> None:
    """004-81: an id that was not made at random may be there twice; the order is by bytes."""
    second = await accept(provider, ProjectKey("t1", "p1"), run_id="run-2")
    first = await accept(provider, ProjectKey("t1", "P1"), run_id="run-1")
    await accept(provider, ProjectKey("t2", "A"))
    assert await look(provider) == UnscopedEffectFound("P1", EffectFound(first))
    assert (await look(provider, tenant_id="t2")).project_id == "A"
    assert second != first


async def test_a_damaged_effect_is_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    """004-44: never skipped."""
    await accept(provider)
    await admin.execute("ALTER TABLE memory.effects DISABLE TRIGGER USER")
    await admin.execute("UPDATE memory.effects SET accept_time = 'infinity'")
    with pytest.raises(StoredDataInvalidError):
        await look(provider)


async def test_a_closed_provider_says_so(provider: PostgresMemoryProvider) -> None:
    """004-101: as by every other method."""
    await provider.close()
    with pytest.raises(ProviderClosedError):
        await look(provider)


def test_only_the_native_adapter_has_it() -> None:
    """004-81: the broker asks whether a provider can, and the contract does not promise it."""
    assert issubclass(PostgresMemoryProvider, UnscopedEffects)
    assert not issubclass(ReferenceMemoryProvider, UnscopedEffects)
