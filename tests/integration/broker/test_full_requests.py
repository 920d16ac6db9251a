"""Requests of nearly 2 MiB that are full of the smallest pieces: one refusal, soon."""

from typing import Any, Final

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.record_calls import UPDATE, refused, request

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

BYTES: Final = 2 * 1024 * 1024 - 4_096


def metadata_of(piece: list[Any], count: int) -> record_pb2.MemoryFacet:
    """Return a facet whose metadata is one list of equal pieces."""
    made = record_pb2.MemoryFacet()
    made.metadata.update({"k": [piece] * count})
    return made


@pytest.mark.parametrize(
    ("field", "rule", "changes"),
    [
        ("tags", "must be at most 1024 with repetitions", {"tags": [""] * (BYTES // 2)}),
        ("tags", "must be at most 1024 with repetitions", {"tags": ["a"] * (BYTES // 3)}),
        (
            "facet_mask",
            "must name at most 64 fields",
            {"facet_mask": FieldMask(paths=[""] * (BYTES // 2))},
        ),
        (
            "facet.metadata",
            "must be at most 8192 bytes as JSON",
            {
                "facet": metadata_of([], BYTES // 4),
                "facet_mask": FieldMask(paths=["metadata"]),
            },
        ),
    ],
    ids=["blank tags", "equal tags", "mask", "metadata"],
)
async def test_requests_full_of_the_smallest_pieces(
    stand: Stand, field: str, rule: str, changes: dict[str, Any]
) -> None:
    """004-48: one violation for a million pieces; judging each held up all other callers."""
    message = request(UPDATE, stand.project(), record_id="absent", **changes)
    async with stand.channel() as channel:
        reply = await refused(channel, UPDATE, message, stand.metadata())
    assert reply.violations == {field: rule}
