-- A page of heads in their order, read from the index that has it: as many rows as it takes to fill
-- the page. Serves what no index of the text could: lists, and text of one or two characters.
-- No row when there is no marker; one row without a head when nothing is found.
--
-- $1 tenant  $2 project  $3 kinds  $4 states  $5 trusts  $6 patterns of the tags  $7 importance at
-- least  $8 at most  $9 updated from  $10 updated before  $11 and $12 where the page before ended
-- $13 number of rows  $14 text  $15 agent. Null asks for nothing, but for $2, $6, $13.
SELECT
    m.resource_id, m.generation, v.create_time AS record_create_time,
    v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title, v.content, v.rationale, v.importance, v.tags, v.facet, v.state, v.trust,
    v.source_run_id, v.source_session_id, v.promoted_decision_id, v.superseded_by_record_id,
    v.reason, v.change_kind, v.actor_fingerprint, v.update_time
FROM memory.resource AS m
LEFT JOIN LATERAL (
    SELECT r.*
    FROM memory.records AS r
    WHERE /* scope */ AND r.state <> 'forgotten'
        AND r.update_time >= coalesce($9::timestamptz, '-infinity')
        AND r.update_time < coalesce($10::timestamptz, 'infinity')
        AND r.update_time <= coalesce($11::timestamptz, 'infinity')
        AND (r.update_time < coalesce($11::timestamptz, 'infinity') OR r.record_id > $12)
        AND /* fits */
    ORDER BY r.update_time DESC, r.record_id COLLATE "POSIX"
    LIMIT $13
) AS v ON true
ORDER BY v.update_time DESC, v.record_id
