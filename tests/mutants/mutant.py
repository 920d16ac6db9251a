"""One bug that is planted."""

from dataclasses import dataclass

LAWS = "tests/conformance/test_laws.py::test_law"


class RottenError(Exception):
    """A mutant's text is not in its file exactly once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug.

    Attributes:
        name: What is wrong then.
        file: Where, from the root of the tree.
        right: The text that is there.
        wrong: The text in its place.
        tests: Node ids for pytest; at least one test in them must fail.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    def plant(self, text: str) -> str:
        """Return the file's text with the bug in it.

        Raises:
            RottenError: The text to replace is not there exactly once.
        """
        found = text.count(self.right)
        if found != 1:
            raise RottenError(f"{self.name}: its text is {found} times in {self.file}")
        return text.replace(self.right, self.wrong)
