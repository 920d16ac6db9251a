"""What the driver says, told apart by code."""

import asyncpg
import pytest

from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    StorageFullError,
    StoredDataInvalidError,
    WriteSetInvalidError,
)
from providers.postgres.errors import translate


def said(state: str, severity: str = "ERROR") -> asyncpg.PostgresError:
    error = asyncpg.PostgresError.new({"C": state, "S": severity, "V": severity, "M": "no matter"})
    assert isinstance(error, asyncpg.PostgresError)
    return error


LOST = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(),
        asyncpg.InterfaceError("closed"),
        LOST,
        said("57P01", "FATAL"),
        said("57P02", "FATAL"),
        said("53100", "PANIC"),
        said("08006"),
    ],
)
def test_a_commit_without_an_answer_is_unknown(error: Exception) -> None:
    assert type(translate(error, in_doubt=True, writing=True)) is OutcomeUnknownError
    assert type(translate(error)) in {
        ProviderTimeoutError,
        ProviderUnavailableError,
        StorageFullError,
    }


@pytest.mark.parametrize(
    ("state", "reading", "writing"),
    [
        ("53100", StorageFullError, StorageFullError),
        ("22021", StoredDataInvalidError, WriteSetInvalidError),
        ("23502", StoredDataInvalidError, WriteSetInvalidError),
        ("XX001", StoredDataInvalidError, StoredDataInvalidError),
        ("XX002", StoredDataInvalidError, StoredDataInvalidError),
        ("57014", ProviderTimeoutError, ProviderTimeoutError),
        ("53300", ProviderUnavailableError, ProviderUnavailableError),
        ("57P03", ProviderUnavailableError, ProviderUnavailableError),
        ("28P01", ProviderUnavailableError, ProviderUnavailableError),
        ("3D000", ProviderUnavailableError, ProviderUnavailableError),
    ],
)
def test_an_answer_is_an_answer(
    state: str, reading: type[ProviderError], writing: type[ProviderError]
) -> None:
    assert type(translate(said(state))) is reading
    assert type(translate(said(state), in_doubt=True, writing=True)) is writing
