"""The bugs of the Cosmos adapter; see ``table``."""

from tests.mutants.mutant import LAWS, Mutant

BROKER = "tests/integration/broker/"
ANSWERS = "tests/integration/providers/test_cosmos_answers.py"
RECALL = f"{LAWS}[cosmos (stand-in)-recall"

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
    Mutant(
        name="what the SDK stumbles over leaves as it is",
        file="providers/cosmos/errors.py",
        right="    except _STUMBLES:\n",
        wrong="    except ZeroDivisionError:\n",
        tests=(f"{ANSWERS}::test_a_write_with_an_unsound_answer_is_unknown",),
    ),
    Mutant(
        name="account and container are looked at by negotiations alone",
        file="providers/cosmos/calls.py",
        right="            if self._is_old():\n                await self._look(opened)\n",
        wrong="            if self._seen is None:\n                await self._look(opened)\n",
        tests=(
            "tests/integration/providers/test_cosmos_negotiation.py"
            "::test_what_became_unfit_is_refused_in_use",
        ),
    ),
    Mutant(
        name="a document may be made to expire",
        file="providers/cosmos/calls.py",
        right='if document.get("ttl") is not None:',
        wrong='if document.get("ttl") == 0:',
        tests=(
            "tests/integration/providers/test_cosmos_damage.py"
            "::test_a_document_that_is_to_expire_is_told",
        ),
    ),
    Mutant(
        name="a query may go round in a circle",
        file="providers/cosmos/calls.py",
        right="if documents and ids <= seen:",
        wrong="if documents and not ids:",
        tests=(f"{ANSWERS}::test_a_query_that_goes_round_is_ended",),
    ),
    Mutant(
        name="a head that is put without an entry loses its own",
        file="providers/cosmos/commit.py",
        right="kept = {} if before is None or put.entry is not None else entries.carried(before)",
        wrong="kept = {} if before is None or put.entry is None else entries.carried(before)",
        tests=(f"{RECALL}ing-entry_is_kept_while_only_the_state_changes]",),
    ),
    Mutant(
        name="an old vector stays with a new entry",
        file="providers/cosmos/index.py",
        right="name not in entries.NAMES",
        wrong='name != "terms"',
        tests=(f"{RECALL}_vectors-vectors_can_be_built_later]",),
    ),
    Mutant(
        name="an entry is put for a head that has moved on",
        file="providers/cosmos/index.py",
        right="[1] == put.revision_id",
        wrong="[1] != put.record_id",
        tests=(f"{RECALL}_index-index_puts_entries_for_the_head_that_was_read]",),
    ),
    Mutant(
        name="recall leaves out what is too much, in silence",
        file="providers/cosmos/recall.py",
        right="        if len(found) > most:\n",
        wrong="        if len(found) > most + 1:\n",
        tests=(f"{RECALL}ing-too_many_memories_are_told]",),
    ),
    Mutant(
        name="a packed term is found by how it begins",
        file="providers/packing.py",
        right="    sought = term + _TAB\n",
        wrong="    sought = term\n",
        tests=("tests/unit/providers/test_packing.py",),
    ),
    Mutant(
        name="the stand-in writes behind what a full disk cut off",
        file="broker/devstack/cosmos/standin/journal.py",
        right="        os.ftruncate(self._file, self._end)\n",
        wrong="        os.ftruncate(self._file, max(self._end, os.fstat(self._file).st_size))\n",
        tests=(
            "tests/integration/devstack/test_cosmos_lifetime.py::test_what_found_no_room_never_was",
        ),
    ),
    Mutant(
        name="Cosmos keeps a project of every tenant in one partition",
        file="providers/cosmos/keys.py",
        right="parts = (project.tenant_id, project.project_id)",
        wrong='parts = ("tenant", project.project_id)',
        tests=(f"{BROKER}test_isolation.py::test_foreign_is_absent[cosmos-another tenant]",),
    ),
    Mutant(
        name="Cosmos forgets how large a history has grown",
        file="providers/cosmos/commit.py",
        right='size = before["allSizes"] + document["allSizes"]',
        wrong='size = document["allSizes"]',
        tests=(
            f"{BROKER}test_races.py::test_a_hundred_identical_updates_make_one_revision[cosmos]",
        ),
    ),
    Mutant(
        name="Cosmos lets an effect pass an earlier one",
        file="providers/cosmos/delivery.py",
        right='is_next = effect["sequence"] == read.delivered + 1',
        wrong='is_next = effect["sequence"] > read.delivered',
        tests=(f"{BROKER}test_delivery.py::test_the_order_of_a_run[cosmos]",),
    ),
    Mutant(
        name="Cosmos does not count changes of links",
        file="providers/cosmos/commit.py",
        right="rows.counter(name, _stands(met, name) + 1)",
        wrong="rows.counter(name, _stands(met, name))",
        tests=(f"{BROKER}test_supersession.py::test_racing_supersessions[cosmos-2]",),
    ),
    Mutant(
        name="Cosmos buries a key past its fence",
        file="providers/cosmos/commit.py",
        right="for each in (*write_set.must_be_absent, *buried)}",
        wrong="for each in (*write_set.must_be_absent, *([] and buried))}",
        tests=(
            "tests/integration/providers/test_cosmos_races.py"
            "::test_a_tombstone_between_read_and_write_is_met",
        ),
    ),
    Mutant(
        name="Cosmos has one fence for all keys",
        file="providers/cosmos/keys.py",
        right='_id("f", name)[:4]',
        wrong='_id("f", name)[:2]',
        tests=(f"{LAWS}[cosmos (stand-in)-claims-absences_do_not_meet]",),
    ),
    Mutant(
        name="Cosmos leaves a socket open that says goodbye",
        file="providers/cosmos/connections.py",
        right="        await self._sockets.end()\n",
        wrong="",
        tests=("tests/integration/providers/test_cosmos_closing.py",),
    ),
    Mutant(
        name="Cosmos gives a connection up with its caller",
        file="providers/cosmos/transport.py",
        right="return await kept(super().send(request, **config))",
        wrong="return await super().send(request, **config)",
        tests=("tests/integration/providers/test_cosmos_leaving.py",),
    ),
)
