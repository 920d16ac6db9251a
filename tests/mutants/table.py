"""The bugs that are planted, and who has to notice.

A mutant names text that is in its file exactly once. Text that is not there any more, or is there
twice, fails the run and a unit test: a rotten mutant proves nothing. The tests are the narrowest
that must go red.
"""

from tests.mutants.admission import MUTANTS as ADMISSION
from tests.mutants.cosmos import MUTANTS as COSMOS
from tests.mutants.embeddings import MUTANTS as EMBEDDINGS
from tests.mutants.mutant import LAWS, Mutant
from tests.mutants.recall import MUTANTS as RECALL
from tests.mutants.redis import MUTANTS as REDIS
from tests.mutants.retrieval import MUTANTS as RETRIEVAL

CHECKS = "tests/unit/authority/test_checks.py"
ORDER = "tests/unit/services/test_access.py"
RECORDS = "tests/unit/domain/test_records.py"

MUTANTS = (
    Mutant(
        name="the commit has no revision predicate",
        file="providers/postgres/commit.sql",
        right="""\
                AND (l.revision, l.revision_id)
                    IS DISTINCT FROM (g.expected_revision, g.expected_revision_id)
""",
        wrong="""\
                AND l.revision IS NULL
""",
        tests=(f"{LAWS}[postgres-cas-wrong_expected_changes_nothing]",),
    ),
    Mutant(
        name="a memory is shared by a tag that folds to cross-team",
        file="providers/postgres/candidates.sql",
        right="""lower(t.tag COLLATE "C") = 'cross-team'""",
        wrong="true",
        tests=(f"{LAWS}[postgres-candidates-memories_are_shared_by_one_tag]",),
    ),
    Mutant(
        name="candidates are sent before they are counted",
        file="providers/postgres/candidates.sql",
        right="s.place = 1 OR s.total <= $6",
        wrong="true",
        tests=(f"{LAWS}[postgres-candidates-candidates_within_bytes]",),
    ),
    Mutant(
        name="the revision a caller saw is not compared",
        file="broker/domain/records.py",
        right="    if record.current.revision != expected_revision:\n",
        wrong="    if record.current.revision < expected_revision:\n",
        tests=(RECORDS,),
    ),
    Mutant(
        name="the receipt is written in a second transaction",
        file="providers/postgres/commit.py",
        right="            applied = await link.fetchval(statement, *given)\n",
        wrong="""\
            key = given[8]
            applied = await link.fetchval(statement, *given[:8], f"{key}~", *given[9:])
            if applied:
                await link.fetchval(
                    "INSERT INTO memory.receipts (tenant_id, project_id, actor_fingerprint,"
                    " idempotency_key, method, fingerprint, refs, effect_id, outcome, create_time)"
                    " SELECT tenant_id, project_id, actor_fingerprint, $1, method, fingerprint,"
                    " refs, effect_id, outcome, create_time"
                    " FROM memory.receipts WHERE idempotency_key = $1 || '~' RETURNING 1",
                    key,
                )
""",
        tests=(f"{LAWS}[postgres-receipts-replay_after_lost_reply_and_restart]",),
    ),
    Mutant(
        name="a lost reply is told as nothing written",
        file="providers/postgres/commit.py",
        right="in_doubt=sent.in_doubt, writing=True",
        wrong="in_doubt=False, writing=True",
        tests=(f"{LAWS}[postgres-faults-timeout_is_unknown]",),
    ),
    Mutant(
        name="a replay is answered from the head",
        file="broker/services/head_writer.py",
        right="            Record(loaded.revisions[ref], ",
        wrong="            Record(loaded.heads[ref.record_id].current, ",
        tests=(f"{ORDER}::test_a_replay_is_behind_a_check_that_began_after_its_receipt_was_read",),
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
        name="histories of any agent are shown",
        file="providers/postgres/revisions.sql",
        right=" AND h.agent_id = $3",
        wrong=" AND $3::text IS NOT NULL",
        tests=(f"{LAWS}[postgres-history-history_of_another_agent_is_not_found]",),
    ),
    Mutant(
        name="a bounded page of heads skips what is too large",
        file="providers/postgres/search.sql",
        right="    WHERE p.place = 1 OR (p.place < $13",
        wrong="    WHERE (p.place < $13",
        tests=(f"{LAWS}[postgres-sizes-bounded_pages_of_heads_join]",),
    ),
    Mutant(
        name="brief pages are sent whole",
        file="providers/postgres/page_columns.sql",
        right="THEN substr(v.content, 1, /* length */)",
        wrong="THEN v.content",
        tests=(f"{LAWS}[postgres-sizes-brief_revisions_are_cut_by_code_points]",),
    ),
    Mutant(
        name="view BASIC reads whole records",
        file="broker/services/search_filter.py",
        right="        brief=not full,\n",
        wrong="",
        tests=("tests/integration/broker/test_small_pages.py::test_a_page_reads_what_it_shows",),
    ),
    Mutant(
        name="heads are found in any tenant",
        file="providers/postgres/load.sql",
        right="WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($3)",
        wrong="WHERE r.project_id = $2 AND r.record_id = ANY ($3)",
        tests=(f"{LAWS}[postgres-identifiers-same_ids_in_two_projects_and_two_tenants]",),
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
        name="an acknowledgement needs no token",
        file="providers/postgres/acknowledge.sql",
        right="        l.run_id = $4 AND NOT l.delivered AND l.lease_token = $7\n",
        wrong="        l.run_id = $4 AND NOT l.delivered AND $7 <> ''\n",
        tests=(f"{LAWS}[postgres-leases-acknowledge_needs_the_token]",),
    ),
    Mutant(
        name="a lease that is over still acknowledges",
        file="providers/postgres/acknowledge.sql",
        right="            AND clock_timestamp() < l.leased_until AS holds\n",
        wrong="            AS holds\n",
        tests=(f"{LAWS}[postgres-leases-expired_lease_acknowledges_nothing]",),
    ),
    Mutant(
        name="an effect overtakes those before it",
        file="providers/postgres/acquire.sql",
        right="        AND NOT j.delivered AND NOT j.is_behind\n",
        wrong="        AND NOT j.delivered\n",
        tests=(f"{LAWS}[postgres-leases-stream_order]",),
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
    *ADMISSION,
    *RECALL,
    *RETRIEVAL,
    *COSMOS,
    *EMBEDDINGS,
    *REDIS,
)
