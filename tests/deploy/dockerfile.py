"""Reads a Dockerfile as far as the tests need it."""

import json
import re
from dataclasses import dataclass, field

from tests.deploy.files import DEPLOY

PATH = DEPLOY / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One instruction of a stage: its word, and the rest of the line."""

    word: str
    rest: str

    def flag(self, name: str) -> str | None:
        """The value of ``--name=``."""
        found = re.search(rf"(?:^| )--{name}=(\S+)", self.rest)
        return found[1] if found else None

    def sources(self) -> list[str]:
        """What a COPY copies."""
        return [part for part in self.rest.split() if not part.startswith("--")][:-1]

    def exec_form(self) -> list[str]:
        """The words of an exec form; fails on a shell form."""
        words: list[str] = json.loads(self.rest)
        return words


@dataclass
class Stage:
    """One stage, in order of the file."""

    name: str
    parent: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, word: str) -> list[Instruction]:
        """The instructions of one kind."""
        return [each for each in self.instructions if each.word == word]


def stages() -> dict[str, Stage]:
    """The stages by name; the last one is the default target."""
    found: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, rest in _lines():
        if word == "FROM":
            parent, _, name = rest.partition(" AS ")
            stage = found[name] = Stage(name, parent)
        elif stage is not None:
            stage.instructions.append(Instruction(word, rest))
    return found


def arguments() -> dict[str, str]:
    """The arguments before the first stage, with their defaults."""
    found = {}
    for word, rest in _lines():
        if word == "FROM":
            break
        name, _, value = rest.partition("=")
        found[name] = value
    return found


def lineage(target: str) -> list[Stage]:
    """A target and what it is built from, the target last; not what it copies from."""
    known = stages()
    line = [known[target]]
    while line[0].parent in known:
        line.insert(0, known[line[0].parent])
    return line


def reached(target: str) -> set[str]:
    """Every stage that adds to a target, through FROM and through COPY --from."""
    names: set[str] = set()
    for stage in lineage(target):
        names.add(stage.name)
        for copy in stage.all("COPY"):
            if origin := copy.flag("from"):
                names |= reached(origin)
    return names


def _lines() -> list[tuple[str, str]]:
    text = PATH.read_text(encoding="utf-8")
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", plain)
    return [(word, rest) for word, _, rest in (x.partition(" ") for x in joined.splitlines() if x)]
