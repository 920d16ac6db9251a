-- Puts entries for heads that still are what they were when they were read, and counts these. The
-- heads are locked as a commit locks them, in the same order: no entry can be put beside an edit.
-- No row when there is no marker.
--
-- $1 tenant  $2 project  $3 resource id  $4 generation  $5 entries  $6 their record ids
-- $7 the numbers of all vectors
WITH given AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset($5) AS g (
        record_id text COLLATE "C", revision_id text COLLATE "C", length integer, terms text[],
        counts integer[], vector_id uuid, vector_model text, vector_dimension integer,
        vector_from integer
    )
),
locked AS MATERIALIZED (
    SELECT r.record_id, r.revision_id, r.agent_id, r.kind
    FROM memory.records AS r
    WHERE r.tenant_id = $1 AND r.project_id = $2 AND r.record_id = ANY ($6)
    ORDER BY r.record_id
    FOR UPDATE
),
fresh AS MATERIALIZED (
    SELECT g.*, l.agent_id
    FROM given AS g
    JOIN locked AS l ON l.record_id = g.record_id AND l.revision_id = g.revision_id
    WHERE l.kind = 'memory'
        AND EXISTS (SELECT FROM memory.resource WHERE resource_id = $3 AND generation = $4)
),
changed_entries AS (
    UPDATE memory.recall_entries AS e
    SET
        length = g.length,
        terms = g.terms,
        counts = g.counts,
        vector_id = g.vector_id,
        vector_model = g.vector_model,
        vector_dimension = g.vector_dimension
    FROM fresh AS g
    WHERE e.tenant_id = $1 AND e.project_id = $2 AND e.record_id = ANY ($6)
        AND e.record_id = g.record_id
    RETURNING 1
),
old_vectors AS (
    DELETE FROM memory.recall_vectors AS v
    USING fresh AS g
    WHERE v.tenant_id = $1 AND v.project_id = $2 AND v.record_id = ANY ($6)
        AND v.record_id = g.record_id
    RETURNING 1
),
new_vectors AS (
    INSERT INTO memory.recall_vectors (
        tenant_id, project_id, record_id, vector_id, agent_id, model, dimension, embedding
    )
    SELECT
        $1, $2, g.record_id, g.vector_id, g.agent_id, g.vector_model, g.vector_dimension,
        ($7::real[])[g.vector_from : g.vector_from + g.vector_dimension - 1]
    FROM fresh AS g
    WHERE g.vector_id IS NOT NULL
    RETURNING 1
)
SELECT m.resource_id, m.generation, (SELECT count(*) FROM changed_entries) AS put
FROM memory.resource AS m
