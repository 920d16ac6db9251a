"""Two workers on one port are one broker: keys, page tokens and records are everybody's."""

import asyncio
import urllib.request
from collections import Counter
from itertools import chain, cycle, islice

import pytest
from grpc import aio

from broker.api.v1 import record_service_pb2 as pb
from tests.fixtures.broker import records
from tests.fixtures.broker_log import complaints
from tests.fixtures.record_requests import create, scope, update
from tests.integration.workers.crew import Crew

RETRIES = 100
UPDATES = 5


async def test_a_hundred_retries_over_both_workers_have_one_effect(crew: Crew) -> None:
    """004-63: the same key and request, at once, through four connections to each worker."""
    project = crew.project()
    async with crew.channels(each=4) as channels:
        assert len(channels) == 2
        in_turn = cycle(chain.from_iterable(zip(*channels.values(), strict=True)))
        calls = [
            records(channel).CreateRecord(
                create(project, "the-key"), metadata=crew.metadata(x_request_id=f"same-{number}")
            )
            for number, channel in enumerate(islice(in_turn, RETRIES))
        ]
        replies = await asyncio.gather(*calls)
    assert len(replies) == RETRIES
    assert [reply.replayed for reply in replies].count(False) == 1
    assert len({reply.record.SerializeToString(deterministic=True) for reply in replies}) == 1
    assert await crew.rows("memory.records", project) == 1
    assert await crew.rows("memory.revisions", project) == 1
    served = Counter(
        line["pid"] for line in crew.lines("call") if line["request_id"].startswith("same-")
    )
    assert served == dict.fromkeys(channels, RETRIES // 2)
    assert complaints(crew.broker) == []


async def pages(crew: Crew, record_id: str, project: str, turns: list[aio.Channel]) -> list[int]:
    """Read a record's history in pages of one, each page through the next channel."""
    token, seen = "", []
    for channel in turns:
        page = await records(channel).ListRevisions(
            pb.ListRevisionsRequest(
                scope=scope(project), record_id=record_id, page_size=1, page_token=token
            ),
            metadata=crew.metadata(),
        )
        seen += [revision.revision for revision in page.revisions]
        token = page.next_page_token
    return seen


async def written(crew: Crew, channel: aio.Channel, project: str) -> str:
    """Make a record of several revisions."""
    stub = records(channel)
    made = await stub.CreateRecord(create(project, "made"), metadata=crew.metadata())
    for number in range(1, UPDATES):
        request = update(made.record, f"update-{number}", expected=number)
        await stub.UpdateRecord(request, metadata=crew.metadata())
    return made.record.record_id


async def test_a_page_token_is_good_on_the_other_worker(crew: Crew) -> None:
    project = crew.project()
    async with crew.channels() as channels:
        (one,), (other,) = channels.values()
        record_id = await written(crew, one, project)
        turns = [one, other] * UPDATES
        assert await pages(crew, record_id, project, turns[:UPDATES]) == [5, 4, 3, 2, 1]


async def test_a_page_token_is_good_after_a_restart(crew: Crew) -> None:
    project = crew.project()
    async with crew.own_channel() as channel:
        record_id = await written(crew, channel, project)
        request = pb.ListRevisionsRequest(scope=scope(project), record_id=record_id, page_size=2)
        first = await records(channel).ListRevisions(request, metadata=crew.metadata())
    before = set(crew.serving().values())
    assert crew.broker.stop() == 0
    crew.broker.start()
    crew.health_port = crew.lines("health")[-1]["port"]
    assert before.isdisjoint(crew.serving().values())
    async with crew.own_channel() as channel:
        request.page_token = first.next_page_token
        second = await records(channel).ListRevisions(request, metadata=crew.metadata())
    assert [each.revision for each in (*first.revisions, *second.revisions)] == [5, 4, 3, 2]


@pytest.mark.parametrize("number", [0, 1])
async def test_every_worker_has_a_metrics_port_of_its_own(number: int, crew: Crew) -> None:
    """The port of the settings for worker 0, the next one for worker 1."""
    pid = crew.serving()[number]
    async with crew.channels() as channels:
        (channel,) = channels[pid]
        own = Counted(crew.metrics_port + number), Counted(crew.metrics_port + 1 - number)
        await records(channel).CreateRecord(
            create(crew.project(), "counted"), metadata=crew.metadata()
        )
        assert [counted.since() for counted in own] == [1, 0]


class Counted:
    """How many records were created, as a metrics port says."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._before = self._now()

    def since(self) -> float:
        """Return how many were created since then."""
        return self._now() - self._before

    def _now(self) -> float:
        with urllib.request.urlopen(self._url, timeout=10) as reply:
            text = reply.read().decode()
        return sum(
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith("broker_calls_total{") and "CreateRecord" in line and '"OK"' in line
        )
