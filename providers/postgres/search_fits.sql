(
    ($3::text[] IS NULL OR r.kind = ANY ($3))
    AND ($4::text[] IS NULL OR r.state = ANY ($4))
    AND ($5::text[] IS NULL OR r.trust = ANY ($5))
    AND r.importance BETWEEN coalesce($7::float8, '-infinity') AND coalesce($8::float8, 'infinity')
    AND r.search_text LIKE ALL ($6::text[])
    AND ($14::text IS NULL OR strpos(r.search_text, $14) > 0)
)
