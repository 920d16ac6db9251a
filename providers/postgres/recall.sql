-- What words find, and the statistics that rank it. The rarest terms are looked for first, as many of
-- them as bring no more records together than is allowed; the others are counted in what these bring.
-- Conditions with the collation of an index fit no other one (schema.py): a count walks through the
-- scope, or through what holds a term in it, whatever the statistics say.
-- No row when there is no marker.
--
-- $1 tenant  $2 project  $3 agent  $4 whether superseded ones fit  $5 time  $6 whether invalidated ones fit
-- $7 namespaces  $8 kinds of memory  $9 subject  $10 epoch  $11 importance at least
-- $12 sensitivities  $13 tiers  $14 tags, all of them  $15 patterns of a tag, any of them
-- $16 terms  $17 how many records driving terms hold  $18 how many matches come
-- Null asks for nothing in $7 to $10 and $15. With a vector also:
-- $19 its numbers  $20 model  $21 dimension  $22 how many nearest come
WITH asked AS MATERIALIZED (
    SELECT a.term, a.place
    FROM unnest($16::text[]) WITH ORDINALITY AS a (term, place)
),
counted AS MATERIALIZED (
    SELECT
        count(e.length) AS documents,
        coalesce(sum(e.length), 0) AS length_total,
        count(*) - count(e.length) AS unindexed
    FROM memory.recall_entries AS e
    WHERE /* scope */ AND (e.live OR (e.replaced AND $4::boolean))
),
frequency AS MATERIALIZED (
    SELECT
        a.term,
        a.place,
        (
            SELECT count(*)
            FROM memory.recall_entries AS e
            WHERE /* scope of the terms */ AND e.terms @> ARRAY[a.term]
                AND (e.live OR (e.replaced AND $4::boolean))
        ) AS held
    FROM asked AS a
),
driving AS MATERIALIZED (
    SELECT array_agg(f.term) AS terms
    FROM (
        SELECT
            h.term,
            row_number() OVER rarest AS place,
            sum(h.held) OVER rarest AS held
        FROM frequency AS h
        WHERE h.held > 0
        WINDOW rarest AS (ORDER BY h.held, h.term COLLATE "C" ROWS UNBOUNDED PRECEDING)
    ) AS f
    WHERE f.place = 1 OR f.held <= $17::bigint
),
matched AS MATERIALIZED (
    SELECT
        e.record_id,
        e.length,
        ARRAY(
            -- An entry's terms are stored in their order.
            SELECT
                CASE
                    WHEN e.terms[width_bucket(a.term, e.terms)] = a.term
                        THEN e.counts[width_bucket(a.term, e.terms)]
                    ELSE 0
                END
            FROM (SELECT t.term COLLATE "C" AS term FROM unnest($16::text[]) AS t (term)) AS a
        ) AS counts
    FROM memory.recall_entries AS e
    WHERE /* scope of the terms */ AND e.terms && (SELECT terms FROM driving) AND /* fits */
    ORDER BY e.update_time DESC, e.record_id
    LIMIT $18::bigint
)/* nearest */
SELECT
    m.resource_id, m.generation, c.documents, c.length_total, c.unindexed,
    (SELECT array_agg(f.held ORDER BY f.place) FROM frequency AS f) AS frequencies,
    f.record_ids, f.lengths, f.counts,
    /* near */
FROM memory.resource AS m
CROSS JOIN counted AS c
CROSS JOIN (
    SELECT
        array_agg(f.record_id) AS record_ids,
        array_agg(f.length) AS lengths,
        array_agg(f.counts) AS counts
    FROM matched AS f
) AS f
