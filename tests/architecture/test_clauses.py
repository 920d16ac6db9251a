"""The contract's numbered clauses and the laws that prove them belong together."""

import ast
import re
from collections.abc import Iterator
from itertools import chain

import pytest

from providers.conformance.law import Law
from providers.conformance.laws import all_laws
from providers.conformance.plan import law_id
from tests.architecture import sources

INTERFACE = "providers/interface.py"
CLAUSE = re.compile(r"^\s*- ([A-Z]+-\d+)\.", re.MULTILINE)
POSTPONED = re.compile(r"\bLaws come with the [a-z ]+ issue\b")
REQUIREMENT = re.compile(r"\b\d{3}-\d{2,}\b")
LAWS = all_laws()


def _docstrings() -> Iterator[str]:
    tree = ast.parse(sources.text(INTERFACE) or "")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented):
            yield ast.get_docstring(node) or ""


SECTIONS = {text: CLAUSE.findall(text) for text in _docstrings()}
CLAUSES = [*chain.from_iterable(SECTIONS.values())]
DUE = [
    clause for text, clauses in SECTIONS.items() if not POSTPONED.search(text) for clause in clauses
]
PROVED = {clause for law in LAWS for clause in law.clauses}


def test_the_contract_is_read_as_it_is_written() -> None:
    assert {"G-1", "N-1", "R-1", "L-1", "C-1", "C-16", "V-1", "D-7"} <= set(CLAUSES)


def test_a_clause_number_is_given_once() -> None:
    assert sorted(CLAUSES) == sorted(set(CLAUSES))


@pytest.mark.parametrize("clause", DUE)
def test_clause_has_a_law(clause: str) -> None:
    assert clause in PROVED


@pytest.mark.parametrize("law", LAWS, ids=law_id)
def test_law_names_what_it_proves(law: Law) -> None:
    assert law.clauses
    assert set(law.clauses) <= set(CLAUSES)
    assert REQUIREMENT.search(law.text), f"{law.name} names no requirement"


def test_law_names_are_unique() -> None:
    names = [law.name for law in LAWS]
    assert sorted(names) == sorted(set(names))
