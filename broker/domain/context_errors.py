"""The refusals of contexts and their log."""

from broker.domain.errors import BrokerError
from broker.domain.reasons import Reason


class LimitNotNarrowingError(BrokerError):
    """A request's limit is above the one that holds, or below 1 (004-91)."""

    reason = Reason.LIMIT_NOT_NARROWING

    def __init__(self, field: str, limit: int) -> None:
        """Name the field and the limit that holds."""
        super().__init__(
            f"{field} must be 1-{limit}", metadata={"field": field, "limit": str(limit)}
        )


class ContextCandidateOverflowError(BrokerError):
    """More candidates, or more content of them, than a context may be compiled from (004-90)."""

    reason = Reason.CONTEXT_CANDIDATE_OVERFLOW

    def __init__(self, what: str, *, limit: int, observed: int) -> None:
        """Tell both numbers; ``observed`` is what was seen at least."""
        super().__init__(
            f"there are more {what} than a context may be compiled from",
            metadata={"what": what, "limit": str(limit), "observed": str(observed)},
        )


class ContextBudgetOverflowError(BrokerError):
    """The decisions that bind alone exceed the budget (004-92)."""

    reason = Reason.CONTEXT_BUDGET_OVERFLOW

    def __init__(self, *, limit: int, observed: int) -> None:
        """Tell both numbers, in characters; ``observed`` is what they take at least."""
        super().__init__(
            "the frame and the decisions that bind alone exceed the budget",
            metadata={"limit": str(limit), "observed": str(observed)},
        )


class CompilationNotFoundError(BrokerError):
    """Absent, or of another run, project or tenant: one answer for all."""

    reason = Reason.COMPILATION_NOT_FOUND

    def __init__(self) -> None:
        """Say the same for every cause."""
        super().__init__("no such compilation")
