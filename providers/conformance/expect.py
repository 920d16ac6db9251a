"""How laws say what they expect. Plain functions, so that no test runner is needed."""

import asyncio
from collections.abc import Awaitable, Collection
from typing import TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

SHOWN_MAX = 500


class LawBrokenError(AssertionError):
    """The adapter does not do what a law asks."""


def that(holds: bool, what: str) -> None:
    """Expect something to hold."""
    if not holds:
        raise LawBrokenError(what)


def equal(actual: object, wanted: object, what: str) -> None:
    """Expect two values to be equal, their types included."""
    if type(actual) is not type(wanted) or actual != wanted:
        raise LawBrokenError(f"{what}: got {_shown(actual)}, wanted {_shown(wanted)}")


def kind(actual: object, wanted: type[T], what: str) -> T:
    """Expect a value of one type and return it as that."""
    if not isinstance(actual, wanted):
        raise LawBrokenError(f"{what}: got {_shown(actual)}, wanted {wanted.__name__}")
    return actual


def some(actual: T | None, what: str) -> T:
    """Expect a value to be there and return it."""
    if actual is None:
        raise LawBrokenError(f"{what}: nothing there")
    return actual


def one_of(actual: object, wanted: tuple[type, ...], what: str) -> None:
    """Expect a value of one of these types."""
    if not isinstance(actual, wanted):
        names = ", ".join(each.__name__ for each in wanted)
        raise LawBrokenError(f"{what}: got {_shown(actual)}, wanted one of {names}")


def exactly(count: int, actual: Collection[object], wanted: type, what: str) -> None:
    """Expect just so many values of a type."""
    found = sum(isinstance(each, wanted) for each in actual)
    if found != count:
        kinds = sorted({type(each).__name__ for each in actual})
        raise LawBrokenError(f"{what}: {found} of {wanted.__name__}, wanted {count}; saw {kinds}")


async def raises(call: Awaitable[object], *wanted: type[E], what: str) -> E:
    """Expect a call to raise one of these errors and return it; another error is a finding too."""
    try:
        got = await call
    except wanted as error:
        return error
    except LawBrokenError:
        raise
    except Exception as error:
        raise LawBrokenError(f"{what}: raised {error!r}, wanted {_names(wanted)}") from error
    raise LawBrokenError(f"{what}: returned {_shown(got)}, wanted {_names(wanted)}")


async def within(seconds: float, call: Awaitable[T], what: str) -> T:
    """Expect a call to end, well or badly, in this time."""
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await call
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise LawBrokenError(f"{what}: did not end in {seconds:.1f} s") from error


def _names(types: tuple[type[BaseException], ...]) -> str:
    return ", ".join(each.__name__ for each in types)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}… ({len(text)} characters)"
