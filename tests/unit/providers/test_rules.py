"""Rules of a write set that no law of the conformance kit can provoke on every store."""

from datetime import datetime, timedelta, timezone

import pytest

from providers.conformance import specimens
from providers.errors import WriteSetInvalidError
from providers.model import ProjectKey, WriteSet
from providers.rules import check

PROJECT = ProjectKey("t1", "p1")
EAST, WEST = (timezone(timedelta(hours=hours)) for hours in (14, -14))


def at(time: datetime) -> WriteSet:
    return specimens.create(PROJECT, specimens.memory("r1", create_time=time))


@pytest.mark.parametrize(
    "time", [datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=WEST)]
)
def test_a_time_without_an_equal_in_utc(time: datetime) -> None:
    """004-44: such a time could be kept and never be read again, so it is not kept."""
    with pytest.raises(WriteSetInvalidError, match="no equal in UTC"):
        check(at(time))


@pytest.mark.parametrize(
    "time", [datetime.min.replace(tzinfo=WEST), datetime.max.replace(tzinfo=EAST)]
)
def test_the_first_and_the_last_time(time: datetime) -> None:
    """004-44: those that have one are kept."""
    check(at(time))
