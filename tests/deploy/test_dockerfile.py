"""The Dockerfile says what it should. That it builds is not shown here: there is no engine."""

import re
import shlex

import pytest

from tests.deploy import dockerfile
from tests.deploy.files import ROOT, project, tool

TARGETS = ("broker", "dev")
UID = "10001"
LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-devstack.lock")
PIP = re.compile(r"pip(?: --python \S+)? install (.*?)(?: && |$)")


def test_hadolint_finds_nothing() -> None:
    done = tool("hadolint", dockerfile.PATH)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_default_target_is_the_one_without_the_development_stack() -> None:
    *_, last = dockerfile.stages()
    assert last == "broker"
    assert dockerfile.reached("broker") == {"broker", "base", "builder"}
    for name in dockerfile.reached("broker"):
        for each in dockerfile.stages()[name].instructions:
            assert "devstack" not in each.rest, each


def test_the_target_dev_adds_the_development_stack() -> None:
    copies = dockerfile.stages()["dev-builder"].all("COPY")
    assert ["broker/devstack"] in [copy.sources() for copy in copies]


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_as_an_unprivileged_user(target: str) -> None:
    line = dockerfile.lineage(target)
    *_, last = [each for stage in line for each in stage.all("USER")]
    assert last.rest == f"{UID}:{UID}"
    words = [each.word for each in line[-1].instructions]
    assert "RUN" not in words[words.index("USER") :]
    assert any(f"useradd --uid {UID}" in run.rest for stage in line for run in stage.all("RUN"))


@pytest.mark.parametrize(("target", "command"), [("broker", "serve"), ("dev", "dev")])
def test_an_image_starts_the_program_itself(target: str, command: str) -> None:
    *_, stage = dockerfile.lineage(target)
    (entrypoint,), (arguments,) = stage.all("ENTRYPOINT"), stage.all("CMD")
    assert entrypoint.exec_form() == ["broker"]
    assert arguments.exec_form()[0] == command


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_tells_what_it_is(target: str) -> None:
    labels = "".join(
        each.rest for stage in dockerfile.lineage(target) for each in stage.all("LABEL")
    )
    named = dict(part.split("=", 1) for part in shlex.split(labels))
    prefix = "org.opencontainers.image."
    assert named[f"{prefix}title"] == project()["name"]
    assert named[f"{prefix}description"] == project()["description"]
    assert named[f"{prefix}licenses"] == project()["license"]
    assert {f"{prefix}version", f"{prefix}revision"} <= named.keys()


def test_only_files_of_the_repository_are_copied() -> None:
    allowed = (dockerfile.PATH.parent / "Dockerfile.dockerignore").read_text().splitlines()
    sources = {
        source
        for stage in dockerfile.stages().values()
        for copy in stage.all("COPY")
        if copy.flag("from") is None
        for source in copy.sources()
    }
    assert all((ROOT / source).exists() for source in sources)
    assert "*" in allowed
    wanted = {f"!{source.split('/')[0]}" for source in sources}
    assert wanted == {line for line in allowed if line.startswith("!")}
    assert not any(stage.all("ADD") for stage in dockerfile.stages().values())


def test_every_installation_is_pinned_by_hash_and_keeps_no_cache() -> None:
    builder = dockerfile.stages()["builder"]
    assert any("PIP_NO_CACHE_DIR=1" in each.rest for each in builder.all("ENV"))
    seen = set()
    for stage in dockerfile.stages().values():
        for run in stage.all("RUN"):
            assert not {"apt", "apt-get", "curl", "wget"} & set(run.rest.split())
            for options in PIP.findall(run.rest):
                if "--no-index" in options:
                    assert "--no-deps" in options
                    continue
                assert "--require-hashes" in options
                seen.add(re.search(r"--requirement (\S+)", options)[1])  # type: ignore[index]
    assert seen == set(LOCKS)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_a_hash_for_everything(name: str) -> None:
    text = (ROOT / name).read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert lines
    assert all(re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:", line) for line in lines)


@pytest.mark.parametrize("name", LOCKS[1:])
def test_the_images_hold_the_versions_that_are_tested(name: str) -> None:
    pinned = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
    tested = dict(pinned.findall((ROOT / "requirements-dev.lock").read_text()))
    assert dict(pinned.findall((ROOT / name).read_text())).items() <= tested.items()


def test_python_is_the_one_that_the_locks_are_for() -> None:
    image = dockerfile.arguments()["PYTHON_IMAGE"]
    found = re.search(r"with Python (\d+\.\d+)", (ROOT / "requirements.lock").read_text())
    assert found
    assert image.startswith(f"python:{found[1]}-slim-")
    assert {stage.parent for stage in dockerfile.stages().values()} - set(dockerfile.stages()) == {
        "${PYTHON_IMAGE}"
    }
    assert f"/lib/python{found[1]}/site-packages/" in dockerfile.PATH.read_text()
