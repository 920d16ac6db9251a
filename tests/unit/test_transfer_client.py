"""Files and headers of ``broker export`` and ``broker import``: what is refused, and how."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Final

import pytest

from broker.cli.transfer_client import (
    Account,
    TransferError,
    check_output,
    export,
    read_bundle,
    write_private,
)
from broker.outbound import PeerSettings


def account(tmp_path: Path, token: str = "token", tenant: str | None = None) -> Account:
    """Return an account whose token is in a file; nobody listens at its address."""
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    peer = PeerSettings(address="127.0.0.1:1", plaintext_loopback=True)
    return Account(peer=peer, token_file=file, tenant=tenant, project="p", run="r", agent="a")


WRONG: Final = ("one\ntwo", "one\r\ntwo", "t\x00t", "t\x7f", "a\tb", "t\xe4g", "x\u2028x")


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("field", "name"), [("token", "token"), ("tenant", "--tenant")])
def test_what_no_header_can_say(tmp_path: Path, field: str, name: str, wrong: str) -> None:
    """004-02: told in one line, which repeats nothing of a token."""
    made = account(tmp_path, **{field: wrong})
    with pytest.raises(TransferError) as refused:
        made.metadata()
    assert name in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert wrong not in str(refused.value)


def test_what_a_header_can_say(tmp_path: Path) -> None:
    """004-02: space around a token is none of it."""
    made = account(tmp_path, token="  ey.J-_~+/= \n", tenant="tenant a")
    assert made.metadata() == [("authorization", "Bearer ey.J-_~+/="), ("x-tenant", "tenant a")]


def test_a_regular_file_is_replaced(tmp_path: Path) -> None:
    """004-82: with mode 0600, whatever it had; nothing is left beside it."""
    file = tmp_path / "bundle"
    for content in (b"one", b"two"):
        write_private(file, content)
        assert file.read_bytes() == content
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("what", ["link", "loose link", "FIFO", "directory", "link to a FIFO"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, what: str) -> None:
    """004-82: neither replaced nor followed, and told before anybody is called."""
    file, other = tmp_path / "bundle", tmp_path / "other"
    if what == "link":
        other.write_bytes(b"kept")
    if what == "link to a FIFO":
        os.mkfifo(other)
    if "link" in what:
        file.symlink_to(other)
    elif what == "FIFO":
        os.mkfifo(file)
    else:
        file.mkdir()
    before = file.lstat()
    with pytest.raises(TransferError, match="no regular file"):
        write_private(file, b"content")
    with pytest.raises(TransferError, match="no regular file"):
        asyncio.run(export(account(tmp_path), (), file))
    assert file.lstat() == before
    assert not other.is_file() or other.read_bytes() == b"kept"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("device", ["/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_devices_are_left_alone(device: str) -> None:
    """004-82: ``-`` is how standard output is named."""
    with pytest.raises(TransferError, match="no regular file"):
        check_output(Path(device))


@pytest.mark.parametrize(
    "content",
    [
        b'{"%s": 1}' % (b"x" * 100_000),
        b'{"records": [{"record": {"kind": "%s"}}]}' % (b"x" * 100_000),
        b'{"records": [{"record": {"createTime": "%s"}}]}' % (b"\x1b[31m" * 10_000),
        b'{"records": [{"record": {"createTime": "a\\nb\\u001b[31m"}}]}',
        b'{"schemaVersion": "%s"}' % (b"9" * 100_000),
        b'{"format": %s}' % (b"[" * 100_000),
    ],
)
def test_little_of_a_file_is_repeated(tmp_path: Path, content: bytes) -> None:
    """004-33: what is no bundle may be a secret, or long; a terminal obeys nothing of it."""
    file = tmp_path / "bundle"
    file.write_bytes(content)
    with pytest.raises(TransferError, match="holds no bundle") as refused:
        read_bundle(file)
    said = str(refused.value).removeprefix(f"{file} holds no bundle: ")
    assert len(said) <= 240
    assert said.isprintable()
