"""Which files of the tree the architecture tests look at."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("broker/api/", "broker/owners/")
LOCKS = ("requirements.lock", "requirements-dev.lock")
# What a change may add. Anything else that lies about untracked, such as a log, is left alone.
ADDED = tuple(
    f"*.{kind}"
    for kind in ("py", "pyi", "sql", "proto", "mako", "md", "toml", "yaml", "json", "lock")
)


def tracked() -> list[str]:
    """Names the files that git knows, and new ones of a kind in ``ADDED``, from the root."""
    names = {*_listed("--cached"), *_listed("--others", "--exclude-standard", "--", *ADDED)}
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


def _listed(*options: str) -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", *options], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout.split("\0")[:-1]
