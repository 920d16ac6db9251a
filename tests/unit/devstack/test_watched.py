"""Files that are read again when they change, and only then."""

import os
from pathlib import Path

import pytest

from broker.devstack.owner import watched
from broker.devstack.owner.watched import FileUnusableError, WatchedFile


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WatchedFile[str]:
    """A file whose status stands for its content at once."""
    monkeypatch.setattr(watched, "_SETTLES_NS", -1)
    path = tmp_path / "file"
    path.write_text("one")
    return WatchedFile(path, bytes.decode)


def test_what_has_settled_is_not_read_again(
    file: WatchedFile[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speed: a look at a file that stays costs its status alone."""
    assert file.current() == "one"
    monkeypatch.setattr(Path, "read_bytes", None)
    assert file.current() == "one"


def test_no_change_hides(file: WatchedFile[str]) -> None:
    """004-01: neither behind the same size and time, nor behind another file of that name."""
    assert file.current() == "one"
    path = file._path
    before = path.stat()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.current() == "two"
    path.unlink()
    with pytest.raises(FileUnusableError):
        file.current()
    path.write_text("two")
    assert file.current() == "two"


def test_what_has_just_changed_is_read_on_every_look(tmp_path: Path) -> None:
    """004-01: the clock of files stands still for a moment, in which it may change again."""
    path = tmp_path / "file"
    path.write_text("one")
    file = WatchedFile(path, bytes.decode)
    assert file.current() == "one"
    assert file._settled is None
