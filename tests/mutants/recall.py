"""Bugs in how PostgreSQL recalls, and the tests that have to notice them."""

from tests.mutants.mutant import LAWS, Mutant

COMMIT = "providers/postgres/commit.sql"
FITS = "providers/postgres/recall_fits.sql"
NEAREST = "providers/postgres/recall_nearest.sql"
RECALL = "providers/postgres/recall.sql"
INDEX = "providers/postgres/index.sql"
ADAPTER = "tests/integration/providers/test_postgres_recall.py"

MUTANTS = (
    Mutant(
        name="what expires now is still recalled",
        file=FITS,
        right="(e.expire_time > $5) IS NOT FALSE",
        wrong="(e.expire_time >= $5) IS NOT FALSE",
        tests=(f"{LAWS}[postgres-recall_filters-the_very_moment_of_expiry_is_expired]",),
    ),
    Mutant(
        name="a memory that is rejected stays live for recall",
        file=COMMIT,
        right="        live = g.state = 'active' AND g.trust IN ('pending', 'approved'),\n",
        wrong="        live = g.state = 'active',\n",
        tests=(f"{LAWS}[postgres-recall_filters-what_a_revision_ends_is_gone_at_once]",),
    ),
    Mutant(
        name="the nearest are cut before they are filtered",
        file=NEAREST,
        right="e.vector_id IS NOT NULL AND /* fits */",
        wrong="e.vector_id IS NOT NULL",
        tests=(f"{LAWS}[postgres-recall_vectors-filters_act_before_the_nearest_are_cut]",),
    ),
    Mutant(
        name="any vector of a record answers for it",
        file=NEAREST,
        right="""\
                v.vector_id IN (
                    SELECT e.vector_id
""",
        wrong="""\
                v.record_id IN (
                    SELECT e.record_id
""",
        tests=(f"{ADAPTER}::test_a_vector_built_beside_an_edit_never_answers_for_it",),
    ),
    Mutant(
        name="every term of a query drives",
        file=RECALL,
        right="    WHERE f.place = 1 OR f.held <= $17::bigint\n",
        wrong="    WHERE f.place > 0 OR f.held <= $17::bigint\n",
        tests=(f"{LAWS}[postgres-recalling-common_words_drive_no_more_where_records_are_many]",),
    ),
    Mutant(
        name="an entry is put for whatever the head has become",
        file=INDEX,
        right=" AND l.revision_id = g.revision_id",
        wrong="",
        tests=(
            f"{LAWS}[postgres-recall_index-index_puts_entries_for_the_head_that_was_read]",
            f"{ADAPTER}::test_an_entry_for_a_head_that_moved_on_meanwhile_is_not_put",
        ),
    ),
)
