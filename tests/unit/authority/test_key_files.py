"""Key sets in files: read again when changed, used for ten minutes when they turn bad (004-12)."""

import json
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker.authority.jwk import DOCUMENT_BYTES_MAX, KEYS_MAX, read_key_set
from broker.authority.keys import FileKeys
from broker.domain.errors import KeysUnavailableError
from tests.fixtures import forged_tokens as forge

EC = forge.private_key("EC", "a")
ONE = forge.key_set(forge.public_jwk(EC, "one"))
TWO = forge.key_set(forge.public_jwk(EC, "two"))

COMPLAINT = {
    "event": "key set cannot be used",
    "log_level": "warning",
    "component": "keys",
    "what": "keys.json",
}


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def move(path: Path, to: Path) -> None:
    path.rename(to)


def replace_at_the_same_time(path: Path, content: bytes) -> None:
    other = path.with_name("other.json")
    other.write_bytes(content)
    status = path.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


@pytest.fixture
def clocks() -> forge.Clocks:
    return forge.Clocks()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_bytes(ONE)
    return path


@pytest.fixture
def keys(file: Path, clocks: forge.Clocks) -> FileKeys:
    return FileKeys(file, clocks.monotonic)


async def test_file_is_read_again_when_it_changed(file: Path, keys: FileKeys) -> None:
    """004-12: a change counts from the next call on, and makes a new generation."""
    first = await keys.current()
    assert (await keys.current()) is first
    write(file, TWO)
    second = await keys.current()
    assert set(second.keys) == {"two"}
    assert second.generation > first.generation


async def test_file_replaced_by_rename(file: Path, keys: FileKeys) -> None:
    """004-12: as a mounted secret changes: same size, same time, another file."""
    await keys.current()
    replace_at_the_same_time(file, TWO)
    assert set((await keys.current()).keys) == {"two"}


async def test_unchanged_file_never_grows_old(keys: FileKeys, clocks: forge.Clocks) -> None:
    """004-12: looking at it confirms it."""
    await keys.current()
    clocks.advance(10_000)
    assert set((await keys.renewed()).keys) == {"one"}


@pytest.mark.parametrize("content", [b"", b"{", b'{"keys":[]}', b"[" * 100_000], ids=len)
async def test_file_that_turned_bad(
    file: Path,
    keys: FileKeys,
    clocks: forge.Clocks,
    content: bytes,
) -> None:
    """004-12: the last good keys for ten minutes, then none, and said once in the log."""
    await keys.current()
    write(file, content)
    clocks.advance(600)
    with capture_logs() as logs:
        assert set((await keys.current()).keys) == {"one"}
        clocks.advance(0.1)
        with pytest.raises(KeysUnavailableError):
            await keys.current()
    assert logs == [{**COMPLAINT, "reason": "malformed"}]
    write(file, TWO)
    assert set((await keys.current()).keys) == {"two"}


async def test_file_that_is_gone_and_comes_back(
    file: Path, keys: FileKeys, clocks: forge.Clocks
) -> None:
    """004-12: found again, even when it is the same file as before."""
    await keys.current()
    away = file.with_name("away.json")
    move(file, away)
    clocks.advance(601)
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(KeysUnavailableError):
                await keys.current()
    assert logs == [{**COMPLAINT, "reason": "FileNotFoundError"}]
    move(away, file)
    assert set((await keys.current()).keys) == {"one"}


async def test_file_that_could_not_be_read_once(
    file: Path, keys: FileKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-12: trouble with the disk is tried again; the file need not change for it."""

    def fail(_: Path) -> bytes:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        with pytest.raises(KeysUnavailableError):
            await keys.current()
    assert set((await keys.current()).keys) == {"one"}


async def test_file_that_was_never_there(tmp_path: Path, clocks: forge.Clocks) -> None:
    """004-12: no keys, no verification."""
    with pytest.raises(KeysUnavailableError):
        await FileKeys(tmp_path / "none.json", clocks.monotonic).current()


async def test_oversize_file(file: Path, keys: FileKeys) -> None:
    """004-12: at most 256 KiB."""
    write(file, ONE + b" " * (DOCUMENT_BYTES_MAX - len(ONE)))
    await keys.current()
    write(file, TWO + b" " * (DOCUMENT_BYTES_MAX - len(TWO) + 1))
    assert set((await keys.current()).keys) == {"one"}


def test_number_of_keys() -> None:
    """004-12: at most one hundred."""
    entries = [forge.public_jwk(EC, f"key-{n}") for n in range(KEYS_MAX + 1)]
    assert len(read_key_set(forge.key_set(*entries[:-1]))) == KEYS_MAX
    with pytest.raises(ValueError, match="100 keys"):
        read_key_set(forge.key_set(*entries))


@pytest.mark.parametrize(
    "document",
    [b"\xff", b"[]", b"null", b'{"keys":{}}', b'{"keys":[1,null,"x"]}', b'{"keys":[{"kid":1}]}'],
)
def test_documents_that_are_no_key_set(document: bytes) -> None:
    """004-12: malformed, or without any usable key."""
    with pytest.raises(ValueError, match=r"key set|decode"):
        read_key_set(document)


def test_entries_that_are_not_understood_are_left_out() -> None:
    """004-12: as RFC 7517 asks; the others stay usable."""
    odd = [
        {"kty": "AKP", "kid": "future"},
        {"kty": ["RSA"], "kid": "list"},
        {"kty": "EC", "kid": "short", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "EC", "kid": "off-curve", "crv": "P-256", "x": "A" * 43, "y": "A" * 43},
        {"kty": "RSA", "kid": "small", "n": "AQ", "e": "AQAB"},
        {"kty": "OKP", "kid": "x25519", "crv": "X25519", "x": "A" * 43},
        forge.public_jwk(EC, "ops", key_ops="verify"),
    ]
    document = json.dumps({"keys": [*odd, forge.public_jwk(EC, "one")]}).encode()
    assert set(read_key_set(document)) == {"one"}
