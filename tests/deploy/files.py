"""What the tests of deploy/ read."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TOOLS = Path(sys.executable).parent

MANIFESTS = sorted(
    path.name for path in (DEPLOY / "k8s").glob("*.yaml") if path.name != "kustomization.yaml"
)


@dataclass(frozen=True)
class Block:
    """One fenced block of the runbook. Without ``run`` it is not run."""

    language: str
    run: str
    text: str


def objects(name: str) -> list[dict[str, Any]]:
    """The objects of one manifest."""
    return list(yaml.safe_load_all((DEPLOY / "k8s" / name).read_text(encoding="utf-8")))


def only(name: str) -> dict[str, Any]:
    """The one object of a manifest."""
    (found,) = objects(name)
    return found


def compose() -> dict[str, Any]:
    """The compose file."""
    return yaml_of(DEPLOY / "compose.yaml")


def yaml_of(path: Path) -> dict[str, Any]:
    """A file that holds one mapping."""
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def settings(*, redis: bool = False) -> dict[str, Any]:
    """The settings in the config map, or with the provider that stands there as a comment."""
    text = only("configuration.yaml")["data"]["broker.toml"]
    if redis:
        before, named, after = text.partition("# [[providers]]\n")
        assert named
        text = before + re.sub(r"^# ?", "", named + after, flags=re.MULTILINE)
    return tomllib.loads(text)


def project() -> dict[str, Any]:
    """The project's own description."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def runbook() -> str:
    """The runbook."""
    return (DEPLOY / "runbook.md").read_text(encoding="utf-8")


def readme_blocks(language: str) -> list[str]:
    """The fenced blocks of the README in a language."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def clients() -> str:
    """What those who call the broker read."""
    return (DEPLOY / "clients.md").read_text(encoding="utf-8")


def blocks(document: str = "") -> Iterator[Block]:
    """The fenced blocks of a document, or of the runbook."""
    fence = re.compile(
        r"^( *)```(\w+) (run=([a-z-]+)|not-run)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL
    )
    for indent, language, _, name, text in fence.findall(document or runbook()):
        lines = (line.removeprefix(indent) for line in text.splitlines())
        yield Block(language, name, "\n".join(lines) + "\n")


def tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the test extra."""
    return subprocess.run(
        [TOOLS / name, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
