"""What an operator is told of an error, as one line."""

from pathlib import Path

import pytest

from broker.cli.refusals import readable


def test_a_file_is_told_by_its_name(tmp_path: Path) -> None:
    """004-101: which, and what is wrong with it; no number."""
    file = tmp_path / "absent"
    with pytest.raises(OSError, match="absent") as error:
        file.read_text(encoding="utf-8")
    assert readable(error.value) == f"{file}: No such file or directory"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("two\n lines"), "two lines"),
        (ConnectionRefusedError(111, "refused"), "[Errno 111] refused"),
        (ValueError(), "ValueError"),
    ],
)
def test_other_errors_are_one_line(error: Exception, told: str) -> None:
    """004-101: what it says; without words, its name."""
    assert readable(error) == told
