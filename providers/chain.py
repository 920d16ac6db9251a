"""Whether stored revisions make a history: the same question for every adapter (C-8)."""

from collections.abc import Sequence
from itertools import pairwise

from providers.errors import StoredDataInvalidError
from providers.model import Revision


def check_chain(chain: Sequence[Revision], record_id: str, newest: int) -> None:
    """Refuse a piece of history, oldest first, with a gap or a link that does not fit.

    Raises:
        StoredDataInvalidError: It has one, is another record's, or does not end at ``newest``. Not
            retryable.
    """
    numbers = [each.revision for each in chain]
    if numbers != list(range(newest - len(chain) + 1, newest + 1)) or (newest and not chain):
        raise StoredDataInvalidError("a stored history has a gap")
    if any(each.record_id != record_id for each in chain):
        raise StoredDataInvalidError("a stored history is of another record")
    if any(later.previous_revision_id != each.revision_id for each, later in pairwise(chain)):
        raise StoredDataInvalidError("a stored history has a link that does not fit")
