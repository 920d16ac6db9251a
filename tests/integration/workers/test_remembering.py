"""Two workers are one memory: what both are told at once is kept once."""

import asyncio
from collections import Counter
from itertools import chain, cycle, islice

from tests.fixtures.broker_log import complaints
from tests.fixtures.memory_calls import CREATED, SKIPPED, Agent
from tests.integration.workers.crew import Crew


async def test_the_same_text_through_both_workers_is_kept_once(crew: Crew) -> None:
    """001-04, R15: 32 identical calls at once; one record, 31 are told of it."""
    project = crew.project()
    async with crew.channels(each=4) as channels:
        assert len(channels) == 2
        in_turn = cycle(chain.from_iterable(zip(*channels.values(), strict=True)))
        agents = [Agent(crew, channel, project) for channel in islice(in_turn, 32)]
        replies = await asyncio.gather(*(each.remember("The sky is blue") for each in agents))
    assert Counter(each.remembered.action for each in replies) == {CREATED: 1, SKIPPED: 31}
    assert len({each.remembered.record.record_id for each in replies}) == 1
    assert await crew.rows("memory.records", project) == 1
    assert complaints(crew.broker) == []
