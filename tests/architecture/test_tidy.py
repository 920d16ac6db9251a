"""What a linter does not see: sizes, names, and words that have no place in the tree.

Docstrings, prints and line lengths are ruff's; who may import whom is import-linter's.
"""

import ast
import re
from pathlib import PurePosixPath

import pytest

from tests.architecture import sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base"}

# Put together here so that this file does not hold what it looks for.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in [
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("deb", "debian", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("buf", "build"),
            ("proxy", "golang", "org"),
            ("crates", "io"),
        ]
    )
)
# Before Python 3.11.5 one keeps a part of what it did not match; an atomic group does not.
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[0-9,]+\}|\{\{[0-9,]+\}\})\+")
PERSONAL_PATHS = re.compile(r"(?<![\w.:/-])/(work|root|home/\w+|Users/\w+)/")

PYTHON_FILES = sources.python()


@pytest.mark.parametrize("name", PYTHON_FILES)
def test_file_is_short(name: str) -> None:
    lines = (sources.text(name) or "").count("\n")
    assert lines <= FILE_LINES_MAX, f"{name} has {lines} lines"


@pytest.mark.parametrize("name", PYTHON_FILES)
def test_functions_are_short(name: str) -> None:
    tree = ast.parse(sources.text(name) or "")
    sizes = {
        f"{name}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {where: size for where, size in sizes.items() if size > FUNCTION_LINES_MAX} == {}


@pytest.mark.parametrize("name", sources.python("broker", "providers"))
def test_no_group_repeats_possessively(name: str) -> None:
    patterns = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(sources.text(name) or ""))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    ]
    assert [each for each in patterns if POSSESSIVE_GROUP.search(each)] == []


def test_module_names_say_what_is_inside() -> None:
    vague = [name for name in PYTHON_FILES if VAGUE_NAMES & _words(name)]
    assert vague == []


@pytest.mark.parametrize("pattern", [UNFINISHED, REGISTRY_HOSTS, PERSONAL_PATHS])
def test_no_file_holds(pattern: re.Pattern[str]) -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in sources.tracked()
        for number, line in enumerate((sources.text(name) or "").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


def _words(name: str) -> set[str]:
    path = PurePosixPath(name)
    return {*path.parts[:-1], path.stem}
