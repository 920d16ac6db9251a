-- Makes vectors of the numbers that embeddings are stored as, where the database has pgvector or
-- lets this role have it, in whatever schema that is. Every migration ends with it, so that pgvector
-- can come to a database later: what is stored by then is cast.
DO $$
DECLARE
    place text;
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        BEGIN
            CREATE EXTENSION IF NOT EXISTS vector SCHEMA memory;
        EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
            RAISE NOTICE 'pgvector is not for this role to create';
        END;
    END IF;
    SELECT quote_ident(n.nspname) INTO place
    FROM pg_extension AS e
    JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector';
    IF place IS NULL OR EXISTS (
        SELECT
        FROM pg_attribute
        WHERE attrelid = 'memory.recall_vectors'::regclass AND attname = 'embedding'
            AND atttypid <> 'real[]'::regtype
    ) THEN
        RETURN;
    END IF;
    EXECUTE format(
        'ALTER TABLE memory.recall_vectors'
        ' ALTER COLUMN embedding TYPE %1$s.vector USING embedding::%1$s.vector,'
        -- Never out of line, where each would cost a look-up: a row fits a page (entries.py).
        ' ALTER COLUMN embedding SET STORAGE PLAIN',
        place
    );
    EXECUTE format(
        'CREATE FUNCTION memory.to_vector(numbers real[]) RETURNS %1$s.vector'
        ' LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN numbers::%1$s.vector',
        place
    );
    -- The cosine of two vectors of unit length.
    EXECUTE format(
        'CREATE FUNCTION memory.likeness(one %1$s.vector, other %1$s.vector) RETURNS float8'
        ' LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN - (one OPERATOR(%1$s.<#>) other)',
        place
    );
END
$$
