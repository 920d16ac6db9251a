-- What the Events service keeps, in a schema of its own that its role owns.

CREATE TABLE IF NOT EXISTS events.streams (
    tenant_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    last_sequence bigint NOT NULL CHECK (last_sequence >= 0),
    PRIMARY KEY (tenant_id, project_id)
);

CREATE TABLE IF NOT EXISTS events.facts (
    tenant_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 1),
    fact_id text COLLATE "C" NOT NULL UNIQUE,
    effect_id text COLLATE "C" NOT NULL,
    event_version integer NOT NULL,
    admitted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, project_id, sequence),
    FOREIGN KEY (tenant_id, project_id) REFERENCES events.streams
);

-- The receipt as it was read back, in one canonical form, and the acknowledgement as it was sent.
CREATE TABLE IF NOT EXISTS events.inbox (
    tenant_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    receipt_id text COLLATE "C" NOT NULL,
    receipt text COLLATE "C" NOT NULL,
    acknowledgement bytea NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (tenant_id, project_id, receipt_id),
    UNIQUE (tenant_id, project_id, sequence),
    FOREIGN KEY (tenant_id, project_id, sequence) REFERENCES events.facts
);

CREATE OR REPLACE FUNCTION events.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of events.% never change', TG_TABLE_NAME;
END
$$;

CREATE OR REPLACE TRIGGER facts_never_change
    BEFORE UPDATE OR DELETE OR TRUNCATE ON events.facts
    FOR EACH STATEMENT EXECUTE FUNCTION events.refuse_change();

CREATE OR REPLACE TRIGGER inbox_never_changes
    BEFORE UPDATE OR DELETE OR TRUNCATE ON events.inbox
    FOR EACH STATEMENT EXECUTE FUNCTION events.refuse_change();
