"""Reads a Bicep file as far as the tests need it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_RESOURCE = re.compile(r"^resource (\w+) '([^@']+)@[^']+' = ", re.MULTILINE)
_TOKEN = re.compile(r"'[^']*'|[{}\[\]:]|[\w.]+(?:\([^)]*\))?")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Name:
    """What stands for a value that is known at the deployment only."""

    text: str


def resources(path: Path) -> dict[str, dict[str, Any]]:
    """The bodies of a file's resources, by their types."""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return {
        found[2]: _value(iter(_TOKEN.findall(text, found.end())))
        for found in _RESOURCE.finditer(text)
    }


def _value(tokens: Iterator[str]) -> Any:
    return _meant(next(tokens), tokens)


def _meant(token: str, tokens: Iterator[str]) -> Any:
    if token == "{":
        return dict(_members(tokens))
    if token == "[":
        return [_meant(each, tokens) for each in iter(lambda: next(tokens), "]")]
    if token.startswith("'"):
        return token[1:-1]
    if token.isdigit():
        return int(token)
    return _WORDS.get(token, Name(token))


def _members(tokens: Iterator[str]) -> Iterator[tuple[str, Any]]:
    for name in iter(lambda: next(tokens), "}"):
        assert next(tokens) == ":", f"no value follows {name}"
        yield name, _value(tokens)
