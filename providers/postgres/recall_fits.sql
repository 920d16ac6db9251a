(
    (e.live OR (e.replaced AND $4::boolean))
    AND e.create_time <= $5::timestamptz
    AND (e.expire_time > $5) IS NOT FALSE
    AND ($6::boolean OR (e.invalidate_time > $5) IS NOT FALSE)
    AND ($7::text[] IS NULL OR e.namespace = ANY ($7))
    AND ($8::text[] IS NULL OR e.memory_kind = ANY ($8))
    AND ($9::text IS NULL OR e.subject = $9)
    AND ($10::text IS NULL OR e.epoch = $10)
    AND e.importance >= $11::float8
    AND coalesce(e.sensitivity, 'internal') = ANY ($12::text[])
    AND coalesce(e.origin_tier, 'external') = ANY ($13::text[])
    AND e.tags @> $14::text[]
    AND (
        $15::text[] IS NULL
        OR EXISTS (SELECT FROM unnest(e.tags) AS t (tag) WHERE t.tag LIKE ANY ($15))
    )
)
