"""What an adapter may raise.

Drivers' errors are translated once, by SQLSTATE or status, with the cause chained.

Messages are for operators: they hold no content, no identifier of a caller, no credential.
"""


class ProviderError(Exception):
    """Base of all provider errors. Unless a subclass says otherwise nothing was written."""


class ProviderUnavailableError(ProviderError):
    """The store cannot be reached, is starting, or its pool is exhausted.

    Nothing was written. Retryable.
    """


class ProviderTimeoutError(ProviderError):
    """The time given ran out before anything was sent that could write.

    Nothing was written. Retryable.
    """


class OutcomeUnknownError(ProviderError):
    """A commit was sent and no answer came back.

    It may have been applied. Retryable with the same receipt key.
    """


class ProviderThrottledError(ProviderError):
    """The store refuses for now. Nothing was written. Retryable after ``retry_after_ms``."""

    def __init__(self, message: str, *, retry_after_ms: int) -> None:
        """Keep the store's own delay, in milliseconds."""
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class StorageFullError(ProviderError):
    """The store has no room left. Nothing was written. Not retryable before an operator acts."""


class StoredDataInvalidError(ProviderError):
    """Something stored does not pass its own check. Never skipped (004-44). Not retryable."""


class ResourceMismatchError(ProviderError):
    """The live resource is not the configured one: other id, other generation, or no marker.

    Not retryable.
    """


class NegotiationRefusedError(ProviderError):
    """The live resource is not fit to keep memory.

    ``fact`` names what is wrong in one word. Not retryable.
    """

    def __init__(self, message: str, *, fact: str) -> None:
        """Keep the fact, such as ``schema``, ``identity`` or ``rights``."""
        super().__init__(message)
        self.fact = fact


class CapabilityMissingError(ProviderError):
    """The provider does not declare the capability this call needs. Not retryable."""

    def __init__(self, capability: str) -> None:
        """Keep the capability's name."""
        super().__init__(f"the provider does not declare {capability}")
        self.capability = capability


class WriteSetInvalidError(ProviderError):
    """The write set breaks its own rules or limits.

    A bug of the caller, found before anything was sent. Not retryable.
    """


class WriteSetTooLargeError(ProviderError):
    """The write set keeps its rules, and is more than is written, or the store takes, at once.

    Nothing was written. Not retryable: less at once may fit.
    """


class RecallScopeTooLargeError(ProviderError):
    """The agent has more memories than this resource looks through at once.

    Not retryable before there are fewer. Nothing was left out in silence.
    """

    def __init__(self, *, limit: int, observed: int) -> None:
        """Keep how many it looks through, and how many there are at least."""
        super().__init__(f"{observed} memories or more, at most {limit}")
        self.limit = limit
        self.observed = observed


class ProviderClosedError(ProviderError):
    """The provider was closed. Not retryable."""
