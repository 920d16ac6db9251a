"""The table of planted bugs keeps up with the tree."""

import pytest

from tests.architecture.sources import ROOT
from tests.mutants.mutant import Mutant, RottenError
from tests.mutants.table import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_not_rotten(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.plant(text) != text
    assert mutant.tests
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).is_file()


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("text", ["nothing like it", "here and here"])
def test_text_that_is_absent_or_there_twice_is_refused(text: str) -> None:
    mutant = Mutant(name="a", file="b", right="here", wrong="there", tests=("c",))
    with pytest.raises(RottenError):
        mutant.plant(text)
