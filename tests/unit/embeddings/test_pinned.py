"""Files of the model: the right ones, or a line that says what is wrong."""

import hashlib
import sys
from pathlib import Path

import pytest

from broker.embeddings.minilm import MiniLm
from broker.embeddings.pinned import ModelUnusableError, PinnedFile, read_pinned

RIGHT = b"weights"
SHA256 = hashlib.sha256(RIGHT).hexdigest()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedFile:
    """A package whose code must not run, with one file."""
    folder = tmp_path / "pinned_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('its code was run')\n")
    (folder / "file.bin").write_bytes(RIGHT)
    monkeypatch.syspath_prepend(tmp_path)
    return PinnedFile(package="pinned_package", path="file.bin", sha256=SHA256)


def test_the_file_is_read_without_running_its_package(package: PinnedFile) -> None:
    assert read_pinned(package) == RIGHT
    assert "pinned_package" not in sys.modules


def test_another_file_is_refused(package: PinnedFile, tmp_path: Path) -> None:
    """001-40: vectors of another model would be compared with those of this one."""
    (tmp_path / "pinned_package" / "file.bin").write_bytes(RIGHT + b"\n")
    with pytest.raises(ModelUnusableError, match=r"file\.bin .* is not the file"):
        read_pinned(package)


def test_an_absent_file_is_refused(package: PinnedFile, tmp_path: Path) -> None:
    (tmp_path / "pinned_package" / "file.bin").unlink()
    with pytest.raises(ModelUnusableError, match="cannot be read"):
        read_pinned(package)


def test_an_absent_package_is_refused() -> None:
    absent = PinnedFile(package="absent_package", path="file.bin", sha256=SHA256)
    with pytest.raises(ModelUnusableError, match=r"absent_package .*knowledge-broker\[embedd"):
        read_pinned(absent)


@pytest.mark.parametrize("name", ["onnxruntime", "tokenizers"])
def test_an_absent_library_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelUnusableError, match=rf"{name} .*knowledge-broker\[embeddings\]"):
        MiniLm.load()


def test_a_library_that_cannot_be_loaded_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('no such symbol')\n")
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelUnusableError, match="onnxruntime cannot be loaded"):
        MiniLm.load()
