-- The tombstones among keys, by key. No row when there is no marker; one without a key when none of
-- the keys holds a tombstone.
--
-- $1 tenant  $2 project  $3 keys
SELECT m.resource_id, m.generation, c.key, c.tombstone_kind, c.tombstone_time
FROM memory.resource AS m
LEFT JOIN memory.claims AS c
    ON c.tenant_id = $1 AND c.project_id = $2 AND c.key = ANY ($3) AND c.tombstone_kind IS NOT NULL
ORDER BY c.key
