"""What the driver says, told apart by code and passed on without the server's words (004-101)."""

import builtins
import ssl
import traceback

import pytest
from redis._parsers.base import BaseParser
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,  # noqa: A004
    NoPermissionError,
    RedisError,
    TimeoutError,  # noqa: A004
)

from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    StorageFullError,
    StoredDataInvalidError,
)
from providers.redis.errors import bare, code_of, translate

REFUSED = {
    "READONLY You can't write against a read only replica.": "replica",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": "replica",
    "CROSSSLOT Keys in request don't hash to the same slot": "cluster",
    "MOVED 3999 127.0.0.1:6381": "cluster",
    "CLUSTERDOWN Hash slot not served": "cluster",
    "NOPERM User canary has no permissions to run the 'config|get' command": "rights",
    "NOAUTH Authentication required.": "rights",
    "WRONGPASS invalid username-password pair or user is disabled.": "rights",
    "MISCONF Errors writing to the AOF file: No space left on device": "aof",
}
TYPED: dict[str, type[ProviderError]] = {
    "OOM command not allowed when used memory > 'maxmemory'.": StorageFullError,
    "WRONGTYPE Operation against a key holding the wrong kind of value": StoredDataInvalidError,
    "LOADING Redis is loading the dataset in memory": ProviderUnavailableError,
    "BUSY Redis is busy running a script.": ProviderUnavailableError,
    "TRYAGAIN Multiple keys request during rehashing of slot": ProviderUnavailableError,
    "NOREPLICAS Not enough good replicas to write.": ProviderUnavailableError,
    "NOSCRIPT No matching script. Please use EVAL.": ProviderUnavailableError,
    "ERR max number of clients reached": ProviderUnavailableError,
    "ERR unknown command 'EVALSHA', with args beginning with: 'canary'": ProviderUnavailableError,
    "ERR user_script:1: attempt to index a nil value": ProviderUnavailableError,
}


def said(text: str) -> Exception:
    """Return what the driver makes of a server's error."""
    error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]
    return error


@pytest.mark.parametrize(("text", "fact"), REFUSED.items())
def test_a_server_that_is_not_fit(text: str, fact: str) -> None:
    """004-38, 004-45: what says that the server is not fit is a refusal, whenever it is said."""
    translated = translate(said(text))
    assert isinstance(translated, NegotiationRefusedError)
    assert translated.fact == fact


@pytest.mark.parametrize(("text", "kind"), TYPED.items())
def test_an_answer_that_is_none(text: str, kind: type[ProviderError]) -> None:
    """004-38: any other answer of the server is typed by its code."""
    assert type(translate(said(text))) is kind


@pytest.mark.parametrize("text", [*REFUSED, *TYPED])
def test_no_word_of_the_server_is_repeated(text: str) -> None:
    """004-101: the server's words name users, keys and arguments; its code is all that is told."""
    code, _, words = text.partition(" ")
    error = said(text)
    assert code_of(error) == code
    assert code_of(bare(error)) == code
    try:
        raise translate(error) from bare(error)
    except ProviderError as raised:
        shown = "".join(traceback.format_exception(raised)) + repr(raised)
    assert words not in shown
    assert "canary" not in shown


@pytest.mark.parametrize("text", ["canary", "canary secret", "", "-1", "Err x", "ERR_X y"])
def test_what_is_no_code_is_not_taken_for_one(text: str) -> None:
    """004-101: an error without a code is no answer, and its first word is not repeated."""
    error = said(text)
    assert code_of(error) == ""
    assert str(translate(error)) == "the server cannot be reached"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionError("Error 111 connecting to localhost:1. Connection refused."), None),
        (ConnectionError("Connection closed by server."), None),
        (TimeoutError("Timeout connecting to server"), None),
        (RedisError("anything"), None),
        (ConnectionResetError(), None),
        (OSError(113, "No route to host"), None),
        (builtins.TimeoutError(), ProviderTimeoutError),
    ],
)
def test_no_answer(error: Exception, kind: type[ProviderError] | None) -> None:
    """004-38: where nobody answers the server is not there, or the caller's time ran out."""
    assert code_of(error) == ""
    assert bare(error) is error
    assert type(translate(error)) is (kind or ProviderUnavailableError)


def below(cause: Exception) -> Exception:
    """Return the driver's error about one that it met, as it raises it."""
    try:
        try:
            raise cause
        except OSError:
            raise ConnectionError("cannot connect")  # noqa: B904
    except ConnectionError as error:
        return error


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ssl.SSLCertVerificationError(1, "hostname mismatch"), "certificate is for another host"),
        (ssl.SSLError(1, "wrong version number"), "does not speak TLS"),
        (ConnectionRefusedError(111, "refused"), "cannot be reached"),
    ],
)
def test_what_is_wrong_with_tls_is_told(cause: Exception, words: str) -> None:
    """004-37: an operator reads whether it is the certificate, the protocol, or nobody there."""
    translated = translate(below(cause))
    assert type(translated) is ProviderUnavailableError
    assert words in str(translated)


def test_codes_of_the_drivers_own_classes() -> None:
    """004-38: the driver cuts some codes off the text; they are known all the same."""
    assert isinstance(said("WRONGPASS x"), AuthenticationError)
    assert isinstance(said("NOPERM x"), NoPermissionError)
    texts = ("WRONGPASS x", "NOPERM x", "ASK 1 127.0.0.1:1")
    assert [code_of(said(text)) for text in texts] == ["WRONGPASS", "NOPERM", "ASK"]
