"""Builds the environment of the peers from their lock file, beside that of the product."""

import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "requirements-bench.lock"
PLACE = ROOT / ".cache" / "bench-venv"
STAMP = PLACE / ".built-from"


def peers_python() -> str:
    """Return the interpreter of the environment, which is built unless it is up to date.

    Raises:
        subprocess.CalledProcessError: A package could not be had; pip has said which.
    """
    python, wanted = PLACE / "bin" / "python", _wanted()
    if not STAMP.is_file() or STAMP.read_text(encoding="utf-8") != wanted:
        print(f"installing what the broker is compared with from {LOCK.name}", file=sys.stderr)
        STAMP.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", PLACE], check=True)
        pip = (python, "-m", "pip", "--disable-pip-version-check", "-qq", "install")
        options = ("--require-hashes", "--only-binary", ":all:", "--requirement", LOCK)
        subprocess.run([*pip, *options], check=True)
        STAMP.write_text(wanted, encoding="utf-8")
    return str(python)


def _wanted() -> str:
    """Return what the environment is built from: this place, this Python, these packages."""
    return f"{PLACE} {sys.version} {zlib.crc32(LOCK.read_bytes())}"
