"""What ``make bench-recall`` says of a folder that it can read nothing from."""

from pathlib import Path

import pytest

from tests.bench.recall import main


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (None, "A folder of conversations is needed"),
        ("absent", "There is no folder"),
        ("file", "There is no folder"),
        ("empty", "There is no conversation"),
    ],
)
def test_a_folder_without_conversations(
    folder: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None given, none there, none in it: each is told, and ends with 2."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert main([] if folder is None else [str(tmp_path / folder)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert folder is None or str(tmp_path / folder) in told
