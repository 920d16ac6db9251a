"""Which files of the tree the architecture tests look at."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("broker/api/", "broker/owners/")
LOCKS = ("requirements.lock", "requirements-dev.lock")


def tracked() -> list[str]:
    """Names every file that git knows or would add, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = (name for name in listed.split("\0") if name)
    return sorted(name for name in names if (ROOT / name).is_file())


def python(*folders: str) -> list[str]:
    """Names the Python files that people wrote, in the given top folders or everywhere."""
    return [
        name
        for name in tracked()
        if name.endswith(".py")
        and not name.startswith(GENERATED)
        and "/versions/" not in name
        and (not folders or name.split("/")[0] in folders)
    ]


def text(name: str) -> str | None:
    """Returns a file's text, or None where it is not text."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
