"""The bugs that are planted, and who has to notice.

A mutant names text that is in its file exactly once. Text that is not there any more, or is there
twice, fails the run and a unit test: a rotten mutant proves nothing. The tests are the narrowest
that must go red.
"""

from tests.mutants.admission import MUTANTS as ADMISSION
from tests.mutants.cosmos import MUTANTS as COSMOS
from tests.mutants.embeddings import MUTANTS as EMBEDDINGS
from tests.mutants.mutant import LAWS, Mutant
from tests.mutants.postgres import MUTANTS as POSTGRES
from tests.mutants.recall import MUTANTS as RECALL
from tests.mutants.redis import MUTANTS as REDIS
from tests.mutants.retrieval import MUTANTS as RETRIEVAL
from tests.mutants.streams import MUTANTS as STREAMS

CHECKS = "tests/unit/authority/test_checks.py"
ORDER = "tests/unit/services/test_access.py"
UNSEEN = "tests/unit/services/test_unseen_creates.py"
RECORDS = "tests/unit/domain/test_records.py"

MUTANTS = (
    Mutant(
        name="the revision a caller saw is not compared",
        file="broker/domain/records.py",
        right="    if record.current.revision != expected_revision:\n",
        wrong="    if record.current.revision < expected_revision:\n",
        tests=(RECORDS,),
    ),
    Mutant(
        name="a replay is answered from the head",
        file="broker/services/head_writer.py",
        right="            Record(loaded.revisions[ref], ",
        wrong="            Record(loaded.heads[ref.record_id].current, ",
        tests=(f"{ORDER}::test_a_replay_is_behind_a_check_that_began_after_its_receipt_was_read",),
    ),
    Mutant(
        name="a store that takes no writes hides what it took",
        file="broker/services/access.py",
        right="            if not is_blind:\n                raise\n",
        wrong="            raise\n",
        tests=(f"{UNSEEN}::test_a_store_that_takes_no_writes_tells_what_it_took",),
    ),
    Mutant(
        name="a tombstone is told without a check that began after it was read",
        file="broker/services/access.py",
        right="case Tombstoned(key) if key in buried:",
        wrong="case Tombstoned(key) if key in met:",
        tests=(f"{UNSEEN}::test_a_tombstone_is_told_behind_a_check_that_began_after",),
    ),
    Mutant(
        name="a store is written to that was not asked whether it is fit",
        file="broker/services/access.py",
        right=" and access.bound.provider.commits_unseen",
        wrong="",
        tests=(f"{UNSEEN}::test_a_store_that_must_be_asked_before_is",),
    ),
    Mutant(
        name="a model reads a text before the store lets it in",
        file="broker/services/access.py",
        right=" and not asks_a_model",
        wrong="",
        tests=(f"{UNSEEN}::test_no_text_goes_to_a_model_that_the_store_refuses",),
    ),
    Mutant(
        name="a key may be used again for another request",
        file="broker/domain/idempotency.py",
        right="    if (receipt.method, receipt.fingerprint) != (method, fingerprint):\n",
        wrong="    if receipt.method != method:\n",
        tests=("tests/unit/domain/test_idempotency.py",),
    ),
    Mutant(
        name="the second check gives the first answer",
        file="broker/authority/checks.py",
        right="        answer = await self._ask(first.call, first.scope, need)\n",
        wrong="""\
        if self is not None:
            return first
        answer = await self._ask(first.call, first.scope, need)
""",
        tests=(CHECKS,),
    ),
    Mutant(
        name="answers of the owner are remembered",
        file="broker/authority/checks.py",
        right="            return await self._owner.run_authority(call, scope, permission)\n",
        wrong="""\
            kept = self.__dict__.setdefault("kept", {})
            if scope not in kept:
                kept[scope] = await self._owner.run_authority(call, scope, permission)
            return kept[scope]
""",
        tests=(CHECKS,),
    ),
    Mutant(
        name="the same answer is not held against what is needed now",
        file="broker/authority/checks.py",
        right="            judge_grants(first.grants, need)\n            return first\n",
        wrong="            return first\n",
        tests=(CHECKS,),
    ),
    Mutant(
        name="a read is told without a second check",
        file="broker/services/access.py",
        right="""\
        await self._authority.recheck(access.authorized, access.need)
        return result
""",
        wrong="        return result\n",
        tests=(f"{ORDER}::test_a_read_is_two_checks_and_one_trip",),
    ),
    Mutant(
        name="a read is checked before and not after",
        file="broker/services/access.py",
        right="""\
            result = await read(access.bound.provider, access.timeout())
        except Exception:
            await self._authority.recheck(access.authorized, access.need)
            raise
        await self._authority.recheck(access.authorized, access.need)
        return result
""",
        wrong="""\
            await self._authority.recheck(access.authorized, access.need)
            result = await read(access.bound.provider, access.timeout())
        except ValueError:
            raise
        return result
""",
        tests=(f"{ORDER}::test_a_read_is_two_checks_and_one_trip",),
    ),
    Mutant(
        name="a replay needs no check of its own",
        file="broker/services/access.py",
        right="        loaded, third = await self._load(access, named)\n",
        wrong="""\
        loaded = await access.bound.provider.load(named, timeout=access.timeout())
        third = access.authorized
""",
        tests=(f"{ORDER}::test_a_replay_is_behind_a_check_that_began_after_its_receipt_was_read",),
    ),
    Mutant(
        name="records of any agent are shown",
        file="broker/domain/records.py",
        right="        or record.current.agent_id != agent_id\n",
        wrong="",
        tests=(RECORDS,),
    ),
    Mutant(
        name="view BASIC reads whole records",
        file="broker/services/search_filter.py",
        right="        brief=not full,\n",
        wrong="",
        tests=("tests/integration/broker/test_small_pages.py::test_a_page_reads_what_it_shows",),
    ),
    Mutant(
        name="an import keeps the trust of its source",
        file="broker/transfer/importer.py",
        right="        trust=Trust.PENDING,\n",
        wrong="",
        tests=("tests/unit/transfer/test_importer.py",),
    ),
    Mutant(
        name="cycles of an import are looked for in its last links alone",
        file="broker/transfer/links.py",
        right="if each.stands(link.start)",
        wrong="if each.end is None",
        tests=("tests/unit/transfer/test_links.py",),
    ),
    Mutant(
        name="an import takes links to decisions of any agent",
        file="broker/transfer/links.py",
        right="        and head.agent_id == agent_id\n",
        wrong="",
        tests=("tests/unit/transfer/test_links.py",),
    ),
    Mutant(
        name="histories of an import may have gaps",
        file="broker/transfer/verify.py",
        right="each.revision == index + 1",
        wrong="each.revision >= index + 1",
        tests=("tests/unit/transfer/test_faults.py",),
    ),
    Mutant(
        name="an import that should only check writes",
        file="broker/services/transfers.py",
        right="        if request.validate_only:\n",
        wrong="        if request.validate_only and not checked.bundle:\n",
        tests=("tests/unit/services/test_transfers.py::test_only_checked",),
    ),
    Mutant(
        name="ids that exist are decided again and again",
        file="broker/services/transfers.py",
        right="            exists=lambda record_id: conflict(bundle, record_id),\n",
        wrong="",
        tests=("tests/unit/services/test_transfers.py",),
    ),
    Mutant(
        name="an import's request is not told by its bundle",
        file="broker/services/transfers.py",
        right='{"bundle": checked.digest}',
        wrong="{}",
        tests=("tests/unit/services/test_transfers.py",),
    ),
    Mutant(
        name="a project's selections may change while it is searched",
        file="broker/authority/checks.py",
        right="            return _same(first[run_id], second[run_id])\n",
        wrong="            return True\n",
        tests=("tests/unit/authority/test_runs.py",),
    ),
    Mutant(
        name="what failed in a project is told before check two",
        file="broker/services/project_search.py",
        right="""\
            await self._authority.recheck_runs(authorized, WHOLE_PROJECT, selections)
            raise
""",
        wrong="            raise\n",
        tests=("tests/unit/services/test_project_search.py",),
    ),
    Mutant(
        name="a project's page tells beyond what every resource gave",
        file="broker/domain/project_pages.py",
        right="        if any(key > end for end in ends):\n            return\n",
        wrong="",
        tests=("tests/unit/domain/test_project_pages.py",),
    ),
    Mutant(
        name="a page parts copies that several resources hold",
        file="broker/domain/project_pages.py",
        right="        hits += added\n",
        wrong="        hits += added[: limit - len(hits)]\n",
        tests=("tests/unit/domain/test_project_pages.py",),
    ),
    Mutant(
        name="a proposal is promoted in any run",
        file="broker/domain/proposals.py",
        right=" or head.source_run_id != request.scope.run_id:\n",
        wrong=":\n",
        tests=("tests/unit/domain/test_proposals.py",),
    ),
    Mutant(
        name="a receipt is told to any subject",
        file="broker/domain/effects.py",
        right="    if asked != kept:\n",
        wrong="    if asked[:4] != kept[:4]:\n",
        tests=("tests/unit/domain/test_effects.py",),
    ),
    Mutant(
        name="a context orders importance as text",
        file="broker/context/scoring.py",
        right="        -importance_band(current.content.importance),\n",
        wrong="        str(current.content.importance),\n",
        tests=("tests/unit/context/test_compiler.py",),
    ),
    Mutant(
        name="a context lets one more in than its limit",
        file="broker/context/compiler.py",
        right="        elif entered == limits.items:\n",
        wrong="        elif entered > limits.items:\n",
        tests=("tests/unit/context/test_limits.py",),
    ),
    Mutant(
        name="a context skips what does not fit though nobody asked",
        file="broker/context/compiler.py",
        right="is_full = not skip_oversized",
        wrong="is_full = False",
        tests=("tests/unit/context/test_limits.py",),
    ),
    Mutant(
        name="a context's budget counts what is not escaped yet",
        file="broker/context/render.py",
        right="        if len(piece) > room:\n            return False\n        self._mem",
        wrong="        if room < 0:\n            return False\n        self._mem",
        tests=("tests/unit/context/test_limits.py",),
    ),
    Mutant(
        name="a context does not escape how a marker begins",
        file="broker/context/frame.py",
        right='for char in "<>&\\x7f"',
        wrong='for char in ">&\\x7f"',
        tests=("tests/unit/context/test_frame.py",),
    ),
    Mutant(
        name="a page of compilations repeats the last one before it",
        file="broker/store/compilation_statements.py",
        right="        yield tuple_(*keys) < tuple_(*seen)\n",
        wrong="        yield tuple_(*keys) <= tuple_(*seen)\n",
        tests=("tests/integration/store/test_compilations.py",),
    ),
    Mutant(
        name="a compilation is found by another run",
        file="broker/store/compilation_statements.py",
        right='("tenant_id", "project_id", "run_id", "compilation_id")',
        wrong='("tenant_id", "project_id", "compilation_id")',
        tests=("tests/integration/store/test_compilations.py",),
    ),
    Mutant(
        name="several heads without history bring any amount of text",
        file="providers/rules.py",
        right="    if size > TOGETHER_BYTES_MAX:\n",
        wrong="    if size > 2 * TOGETHER_BYTES_MAX:\n",
        tests=("tests/unit/providers/test_rules.py::test_bytes_of_several",),
    ),
    Mutant(
        name="several heads without history bring any number of tags",
        file="providers/rules.py",
        right="    if tags > TOGETHER_TAGS_MAX:\n",
        wrong="    if tags > TOGETHER_TAGS_MAX + 1:\n",
        tests=(f"{LAWS}[postgres-limits-several_heads_without_history_are_bounded]",),
    ),
    *POSTGRES,
    *ADMISSION,
    *RECALL,
    *RETRIEVAL,
    *COSMOS,
    *EMBEDDINGS,
    *REDIS,
    *STREAMS,
)
