"""Whether everything a call needs answers; and what refuses to be served with at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from broker.authority.tokens import TokenVerifier
from broker.binding.catalog import CatalogEntry
from broker.domain.errors import BrokerError
from broker.store.fitness import SchemaUnfitError, check_schema
from broker.telemetry.logs import describe, logger
from providers.errors import NegotiationRefusedError, ProviderError, ResourceMismatchError

LOOK_SECONDS: Final = 2.0
"""How often readiness is looked at, and how long one look may take."""


class ConfigurationError(Exception):
    """What is configured must not be served with. The message names it; the process ends."""


@dataclass(frozen=True, slots=True)
class Look:
    """What answered at one moment: all that a call may need, and each enabled provider by id."""

    ready: bool
    providers: Mapping[str, bool]


Tell = Callable[[Look], None]


class Readiness:
    """Looks at keys, the broker's own store and every enabled provider (004-101)."""

    def __init__(
        self, engine: AsyncEngine, verifier: TokenVerifier, entries: Sequence[CatalogEntry]
    ) -> None:
        """Take what is looked at."""
        self._engine = engine
        self._verifier = verifier
        self._entries = [entry for entry in entries if entry.enabled]

    async def refuse_unfit(self) -> None:
        """Refuse a schema, role or resource that is there and not fit. Silence is no refusal.

        Raises:
            ConfigurationError: names the store or provider and what is wrong.
        """
        try:
            with suppress(BrokerError):
                await check_schema(self._engine, timeout=LOOK_SECONDS)
        except SchemaUnfitError as error:
            raise ConfigurationError(f"store: {error}") from error
        for entry in self._entries:
            try:
                await entry.provider.negotiate(timeout=LOOK_SECONDS)
            except (NegotiationRefusedError, ResourceMismatchError) as error:
                raise ConfigurationError(f"providers: {entry.provider_id}: {error}") from error
            except ProviderError:
                continue

    async def look(self) -> Look:
        """Ask everything at once whether it answers now."""
        ours, *answers = await asyncio.gather(
            _answers(self._ask_ours()),
            *(_answers(entry.provider.ready(timeout=LOOK_SECONDS)) for entry in self._entries),
        )
        ids = [entry.provider_id for entry in self._entries]
        return Look(ours and all(answers), dict(zip(ids, answers, strict=True)))

    @asynccontextmanager
    async def watched(self, tell: Tell) -> AsyncIterator[None]:
        """Tell now, and again every two seconds until the context ends."""
        tell(await self.look())
        watching = asyncio.create_task(self._watch(tell))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _ask_ours(self) -> None:
        async with asyncio.timeout(LOOK_SECONDS):
            await self._verifier.load()
        await check_schema(self._engine, timeout=LOOK_SECONDS)

    async def _watch(self, tell: Tell) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            tell(await self.look())


async def _answers(question: Awaitable[None]) -> bool:
    try:
        await question
    except (BrokerError, ProviderError, SchemaUnfitError, TimeoutError):
        return False
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no answer; the watch goes on
        logger("readiness").error("look_failed", **describe(error))
        return False
    return True
