"""Whether everything a call needs answers; and what refuses to be served with at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

from sqlalchemy.ext.asyncio import AsyncEngine

from broker.authority.tokens import TokenVerifier
from broker.binding.catalog import CatalogEntry
from broker.domain.errors import BrokerError
from broker.store.fitness import SchemaUnfitError, check_schema
from broker.telemetry.troubles import Troubles, address_fault
from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderUnavailableError,
    ResourceMismatchError,
)

LOOK_SECONDS: Final = 2.0
"""How often readiness is looked at, and how long one look may take."""


class ConfigurationError(Exception):
    """What is configured must not be served with. The message names it; the process ends."""


class Serving(Protocol):
    """Takes whether calls should come here."""

    def __call__(self, *, serving: bool) -> None:
        """Say so through health."""
        ...


class Readiness:
    """Looks at keys, the broker's own store and every enabled provider (004-101)."""

    def __init__(
        self, engine: AsyncEngine, verifier: TokenVerifier, entries: Sequence[CatalogEntry]
    ) -> None:
        """Take what is looked at."""
        self._engine = engine
        self._verifier = verifier
        self._entries = [entry for entry in entries if entry.enabled]
        self._troubles = Troubles()

    async def refuse_unfit(self) -> None:
        """Refuse a schema, role or resource that is there and not fit. Silence is no refusal.

        Raises:
            ConfigurationError: names the store or provider and what is wrong.
        """
        try:
            await check_schema(self._engine, timeout=LOOK_SECONDS)
        except (BrokerError, SchemaUnfitError, ValueError) as error:
            if fault := address_fault(error):
                raise ConfigurationError(f"store.dsn: {fault}") from error
            if isinstance(error, SchemaUnfitError):
                raise ConfigurationError(f"store: {error}") from error
        for entry in self._entries:
            try:
                await entry.provider.negotiate(timeout=LOOK_SECONDS)
            except (NegotiationRefusedError, ResourceMismatchError) as error:
                fault = address_fault(error) or str(error)
                raise ConfigurationError(f"providers: {entry.provider_id}: {fault}") from error
            except (ProviderUnavailableError, ValueError) as error:
                if fault := address_fault(error):
                    raise ConfigurationError(f"providers: {entry.provider_id}: {fault}") from error
            except ProviderError:
                continue

    async def look(self) -> bool:
        """Ask everything whether it answers now, and write down why it does not."""
        asked = {
            "keys": self._ask_keys(),
            "store": check_schema(self._engine, timeout=LOOK_SECONDS),
            **{
                f"provider/{entry.provider_id}": entry.provider.ready(timeout=LOOK_SECONDS)
                for entry in self._entries
            },
        }
        answers = await asyncio.gather(*map(_trouble, asked.values()))
        found = {what: error for what, error in zip(asked, answers, strict=True) if error}
        self._troubles.tell(found)
        return not found

    @asynccontextmanager
    async def watched(self, tell: Serving) -> AsyncIterator[None]:
        """Tell health now, and again every two seconds until the context ends."""
        tell(serving=await self.look())
        watching = asyncio.create_task(self._watch(tell))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _ask_keys(self) -> None:
        async with asyncio.timeout(LOOK_SECONDS):
            await self._verifier.load()

    async def _watch(self, tell: Callable[..., None]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            tell(serving=await self.look())


async def _trouble(question: Awaitable[None]) -> Exception | None:
    try:
        await question
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no answer; the watch goes on
        return error
    return None
