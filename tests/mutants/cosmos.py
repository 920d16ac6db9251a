"""The bugs of the Cosmos adapter; see ``table``."""

from tests.mutants.mutant import LAWS, Mutant

MUTANTS = (
    Mutant(
        name="a document is put over whatever is there",
        file="providers/cosmos/batch.py",
        right='("create", (whole,))',
        wrong='("upsert", (whole,))',
        tests=("tests/integration/providers/test_cosmos_races.py",),
    ),
    Mutant(
        name="a document is replaced whoever replaced it before",
        file="providers/cosmos/batch.py",
        right='whole), {"if_match_etag": etag}), etag)',
        wrong='whole), {"if_match_etag": "*"}), etag)',
        tests=(f"{LAWS}[cosmos (stand-in)-supersession-cycle_refused_under_race]",),
    ),
    Mutant(
        name="the SDK may send a write again",
        file="providers/cosmos/connections.py",
        right="        if sent in self.sent:\n",
        wrong="        if sent in self.sent and not sent.body:\n",
        tests=("tests/integration/providers/test_cosmos_faults.py",),
    ),
    Mutant(
        name="a lease ends by the broker's clock",
        file="providers/cosmos/delivery.py",
        right='int(there["moment"])',
        wrong='int(__import__("time").time() * 1000)',
        tests=("tests/integration/providers/test_cosmos_races.py",),
    ),
    Mutant(
        name="a batch that is answered in part counts as applied",
        file="providers/cosmos/calls.py",
        right="if len(done) != len(batch.operations) or len(results) != len(done):",
        wrong="if len(results) != len(done):",
        tests=("tests/integration/providers/test_cosmos_faults.py",),
    ),
    Mutant(
        name="the container may be another one",
        file="providers/cosmos/connections.py",
        right="!= self.rid:",
        wrong="== '':",
        tests=("tests/integration/providers/test_cosmos_negotiation.py",),
    ),
    Mutant(
        name="pages of two moments are taken for one",
        file="providers/cosmos/calls.py",
        right="if len(pages) <= 1 or await self.is_unchanged(query, found):",
        wrong="if pages or not found:",
        tests=("tests/integration/providers/test_cosmos_races.py",),
    ),
    Mutant(
        name="a lost batch is told as nothing written",
        file="providers/cosmos/calls.py",
        right="        self.sent.in_doubt = True\n",
        wrong="        self.sent.in_doubt = False\n",
        tests=("tests/integration/providers/test_cosmos_faults.py",),
    ),
)
