"""The bugs of the PostgreSQL adapter; see ``table``."""

from tests.mutants.mutant import LAWS, Mutant

DOMAINS = "tests/integration/providers/test_postgres_domains.py"
GATHERING = "tests/integration/providers/test_postgres_gathering.py"

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
        name="a replay is a violation on the server's record",
        file="providers/postgres/commit.sql",
        right="                AND t.idempotency_key = $9\n",
        wrong="                AND t.idempotency_key = $9 || '~'\n",
        tests=(
            "tests/integration/providers/test_postgres_statements.py"
            "::test_a_replay_is_no_error_of_the_server",
        ),
    ),
    Mutant(
        name="a domain holds its columns to nothing",
        file="providers/postgres/migrations/versions/0007_domains.py",
        right="CHECK ({condition})",
        wrong="CHECK (true OR {condition})",
        tests=(f"{DOMAINS}::test_nobody_stores_what_a_column_may_not_hold",),
    ),
    Mutant(
        name="a migration writes the tables anew",
        file="providers/postgres/migrations/versions/0007_domains.py",
        right="CREATE DOMAIN {SCHEMA}.{domain} AS {base}",
        wrong="CREATE DOMAIN {SCHEMA}.{domain} AS {base} CHECK (true)",
        tests=(f"{DOMAINS}::test_what_was_stored_before_stays_where_it_is",),
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
        name="reads of one tick are all given what the first asked for",
        file="providers/postgres/gathering.py",
        right="heads.get(number)",
        wrong="heads.get(1)",
        tests=(f"{GATHERING}::test_reads_of_one_tick_share_statements",),
    ),
    Mutant(
        name="one head is found in any tenant",
        file="providers/postgres/heads.sql",
        right="h.tenant_id = a.tenant_id AND h.project_id = a.project_id",
        wrong="h.project_id = a.project_id",
        tests=(f"{GATHERING}::test_reads_of_one_tick_share_statements",),
    ),
    Mutant(
        name="a read that is cancelled cancels those that share its statement",
        file="providers/postgres/gathering.py",
        right="all(each.found.done() for each in self.mates)",
        wrong="any(each.found.done() for each in self.mates)",
        tests=(f"{GATHERING}::test_one_that_leaves_takes_nobody_along",),
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
        name="heads are found in any tenant",
        file="providers/postgres/load.sql",
        right="WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($3)",
        wrong="WHERE r.project_id = $2 AND r.record_id = ANY ($3)",
        tests=(f"{LAWS}[postgres-identifiers-same_ids_in_two_projects_and_two_tenants]",),
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
)
