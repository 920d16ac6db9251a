"""Lines over a stream, and health joined over workers."""

import pytest

from broker.supervision.messages import Lines, encode
from broker.supervision.supervisor import joined


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_messages_arrive_whole_however_they_are_cut(size: int) -> None:
    sent: list[dict[str, object]] = [{"serves": True}, {"refused": "line\nbreak"}, {}]
    stream = b"".join(map(encode, sent)) + b'{"cut'
    lines = Lines()
    parts = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert [message for part in parts for message in lines.feed(part)] == sent


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], {"": False, "provider/a": False}),
        ([{}, {}], {"": False, "provider/a": False}),
        ([{"": False, "provider/a": True}, {}], {"": False, "provider/a": True}),
        ([{"": False}, {"": True, "provider/a": True}], {"": True, "provider/a": True}),
        ([{"": True, "provider/unknown": True}], {"": True, "provider/a": False}),
    ],
)
def test_the_whole_has_what_one_worker_has(
    told: list[dict[str, bool]], expected: dict[str, bool]
) -> None:
    assert joined(["", "provider/a"], told) == expected
