,
nearest AS MATERIALIZED (
    SELECT n.record_id, n.likeness, row_number() OVER (ORDER BY n.likeness DESC, n.record_id) AS place
    FROM (
        SELECT
            v.record_id,
            memory.likeness(v.embedding, (SELECT memory.to_vector($19::real[]))) AS likeness
        FROM memory.recall_vectors AS v
        WHERE /* scope of the vectors */
            AND v.model COLLATE "POSIX" = $20 AND v.dimension = $21::integer
            -- IS TRUE keeps this from being planned as a join: it is one look-up in a hash for
            -- each. A vector that no entry names is what an edit beside an index left behind.
            AND (
                v.vector_id IN (
                    SELECT e.vector_id
                    FROM memory.recall_entries AS e
                    WHERE /* scope */ AND e.vector_id IS NOT NULL AND /* fits */
                )
            ) IS TRUE
    ) AS n
    ORDER BY place
    LIMIT $22::bigint
)
