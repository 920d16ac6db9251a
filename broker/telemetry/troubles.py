"""Why something does not answer: told once in the log, without what an error's text may hold."""

from collections.abc import Iterator, Mapping
from typing import Final

from broker.telemetry.logs import describe, logger

_AUTHENTICATION_CLASS: Final = "28"
_UNKNOWN_PARAMETER: Final = "42704"


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error, or of what caused it."""
    found = (getattr(each, "sqlstate", None) for each in _chain(error))
    return next((str(state) for state in found if state), None)


def address_fault(error: BaseException) -> str | None:
    """Return what is wrong with a database's address, if that is why it does not answer.

    A driver refuses an address with ValueError; the server refuses a login, or a parameter that the
    address hands to it.
    """
    state = sqlstate(error) or ""
    if state.startswith(_AUTHENTICATION_CLASS):
        return f"the database refuses this role or its password ({state})"
    if state == _UNKNOWN_PARAMETER or any(map(_refuses_address, _chain(error))):
        return "a part of the address is not valid"
    return None


class Troubles:
    """What does not answer now. A line is written when that, or the reason, changes."""

    def __init__(self) -> None:
        """Know of nothing yet; the first look is told of in any case."""
        self._told: dict[str, dict[str, str]] | None = None

    def tell(self, found: Mapping[str, Exception]) -> None:
        """Compare with the last look.

        Args:
            found: What does not answer, and the error that says so.
        """
        now = {what: _shown(error) for what, error in found.items()}
        before = self._told or {}
        log = logger("readiness")
        for what in before.keys() - now.keys():
            log.info("answers_again", what=what)
        for what, shown in now.items():
            if before.get(what) != shown:
                location = describe(found[what]).get("location")
                log.warning("readiness", state="not_serving", what=what, **shown, location=location)
        if not now and (self._told is None or before):
            log.info("readiness", state="serving")
        self._told = now


def _shown(error: Exception) -> dict[str, str]:
    shown = {"error_type": describe(error)["error_type"]}
    if fact := next((each.fact for each in _chain(error) if hasattr(each, "fact")), None):
        shown["fact"] = str(fact)
    state = sqlstate(error)
    if state is not None:
        shown["sqlstate"] = state
        if fault := address_fault(error):
            shown["reason"] = fault
    return shown


def _refuses_address(error: BaseException) -> bool:
    # A certificate that does not fit is a ValueError too, and the server's trouble.
    return isinstance(error, ValueError) and not isinstance(error, OSError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__
