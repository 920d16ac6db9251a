"""Whatever history a broker can make is exported, verified and imported; and so on from there.

Random walks through the verbs of the domain, from a few records, with seeds that are always the
same.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import pytest

from broker.domain import lifecycle
from broker.domain.errors import BrokerError
from broker.domain.fields import normal_tags
from broker.domain.records import Stamp, created, updated
from broker.domain.requests import RejectKind
from broker.domain.supersession import superseded
from broker.server.bundle_json import canonical_json, read_json
from broker.server.bundles import MessageBundle, bundle_message
from broker.transfer.bundle import Bundle, exported
from broker.transfer.importer import heads_of
from broker.transfer.links import judged_links
from broker.transfer.verify import checked_bundle
from providers.conformance import specimens
from providers.model import Content, HeadPut, Kind, MemoryFacet, OriginTier, Record, Revision
from providers.requests import ChainLink
from tests.fixtures.bundles import START

STEPS: Final = 60
RECORDS: Final = 7
LINKED: Final = 24
"""Of so many walks some contain links both ways between two decisions."""


@dataclass
class Place:
    """The records of one agent in one store, and a clock."""

    dice: random.Random
    chains: dict[str, list[Revision]] = field(default_factory=dict)
    now: datetime = START
    numbers: Callable[[], int] = field(default_factory=lambda: count(1).__next__)

    def stamp(self) -> Stamp:
        """Let some time pass, or none."""
        self.now += timedelta(microseconds=self.dice.choice([0, 1, 1_000, 60_000_000]))
        prefix = f"id-{self.dice.randrange(2**40):x}"
        return Stamp(self.now, lambda: f"{prefix}-{self.numbers()}", specimens.ACTOR)

    def keep(self, put: HeadPut) -> None:
        """Append what a verb made."""
        current = put.record.current
        self.chains.setdefault(current.record_id, []).append(current)

    def head(self, record_id: str) -> Record:
        """Return a record as it stands."""
        chain = self.chains[record_id]
        return Record(chain[-1], chain[0].create_time)

    def links_from(self, record_id: str) -> list[ChainLink]:
        """Walk as a store does."""
        found: list[ChainLink] = []
        wanted: str | None = record_id
        while wanted is not None and wanted in self.chains and len(found) <= RECORDS:
            now = self.chains[wanted][-1]
            wanted = now.superseded_by_record_id
            found.append(ChainLink(now.record_id, now.agent_id, now.kind, now.state, wanted))
        return found

    def make(self) -> None:
        """Make a record."""
        kind = self.dice.choice([Kind.MEMORY, Kind.DECISION, Kind.DECISION])
        facet = self.dice.choice([None, MemoryFacet(origin_tier=OriginTier.AGENT, metadata={})])
        self.keep(
            created(
                kind=kind,
                agent_id="agent-a",
                run_id="run-a",
                content=self.text(),
                facet=facet,
                stamp=self.stamp(),
            )
        )

    def text(self) -> Content:
        """Say something."""
        return Content(
            type="note",
            title=self.dice.choice([None, " ", "title"]),
            content=self.dice.choice(["a", " é\n", "\x01", "\U0001f600"]),
            rationale=self.dice.choice([None, "because"]),
            importance=self.dice.choice([0.0, 0.1 + 0.2, 1.0]),
            tags=normal_tags(self.dice.choices(["b", "A", "ß", "a c"], k=2)),
        )

    def step(self) -> None:
        """Do something to some record; what is not allowed leaves no trace."""
        record = self.head(self.dice.choice(list(self.chains)))
        other = self.dice.choice(list(self.chains))
        stamp, reason = self.stamp(), self.dice.choice([None, "why"])
        source = self.dice.choice(self.chains[record.current.record_id])
        verbs: list[Callable[[], HeadPut]] = [
            lambda: updated(
                record,
                content=self.text(),
                facet=record.current.facet,
                reason=reason,
                tier_cap=OriginTier.AGENT,
                stamp=stamp,
            ),
            lambda: lifecycle.archived(record, reason=reason, stamp=stamp),
            lambda: lifecycle.unarchived(record, reason=reason, stamp=stamp),
            lambda: lifecycle.approved(record, reason=reason, stamp=stamp),
            lambda: lifecycle.reopened(record, reason=reason, stamp=stamp),
            lambda: lifecycle.rejected(
                record, reject_kind=RejectKind.UNTRUE, reason=reason, stamp=stamp
            ),
            *[lambda: superseded(record, other, self.links_from(other), reason=reason, stamp=stamp)]
            * 3,
            *[
                lambda: lifecycle.restored(
                    record, source, reason=reason, tier_cap=OriginTier.AGENT, stamp=stamp
                )
            ]
            * 2,
        ]
        try:
            self.keep(self.dice.choice(verbs)())
        except BrokerError:
            return

    def walk(self) -> Bundle:
        """Do many things; return what an export would."""
        for _ in range(STEPS):
            self.step()
        return exported(
            "p", "agent-a", [(self.head(each), (*chain,)) for each, chain in self.chains.items()]
        )


def carried(bundle: Bundle, now: datetime) -> Bundle:
    """Write a bundle to a file, read it, and check it as an import does."""
    message = read_json(canonical_json(bundle_message(bundle)))
    return checked_bundle(MessageBundle(message, present=True), now)


@pytest.mark.parametrize("seed", range(LINKED))
def test_walk(seed: int) -> None:
    """004-82, 004-86, 004-87, 004-88: verified as made, imported, and walked on from there."""
    home = Place(random.Random(seed))
    for _ in range(RECORDS):
        home.make()
    bundle = home.walk()
    for _ in range(2):
        brought = carried(bundle, home.now)
        assert brought == bundle
        there = Place(random.Random(seed), now=home.now, numbers=home.numbers)
        there.chains = {
            chain.record.current.record_id: [*chain.revisions] for chain in brought.chains
        }
        for put in heads_of(brought, judged_links(brought), {}, "run-b", there.stamp()):
            there.keep(put)
        bundle = there.walk()
        home = there


def test_walks_lead_both_ways() -> None:
    """004-58: among the walks there are links back along a way that was given up before."""
    both = 0
    for seed in range(LINKED):
        home = Place(random.Random(seed))
        for _ in range(RECORDS):
            home.make()
        ways = {
            (each.record_id, each.superseded_by_record_id)
            for chain in home.walk().chains
            for each in chain.revisions
        }
        both += any((target, source) in ways for source, target in ways if target)
    assert both > 0
