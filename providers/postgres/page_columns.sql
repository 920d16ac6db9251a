v.record_id, v.revision, v.revision_id, v.previous_revision_id, v.agent_id, v.kind, v.type,
    v.title,
    -- Of a value that is stored out of line no more is fetched than is taken, and for its size
    -- nothing at all.
    CASE WHEN /* brief */ AND octet_length(v.content) > /* length */
        THEN substr(v.content, 1, /* length */)
        ELSE v.content
    END AS content,
    CASE WHEN NOT /* brief */ THEN v.rationale END AS rationale,
    v.importance, v.tags,
    -- What is small is left to its reader: taking it apart here would cost more than it saves.
    CASE WHEN /* brief */ AND octet_length(v.facet::text) > 2048
        THEN (v.facet::jsonb - 'metadata')::json
        ELSE v.facet
    END AS facet,
    v.state, v.trust, v.source_run_id, v.source_session_id, v.promoted_decision_id,
    v.superseded_by_record_id, v.reason, v.change_kind, v.actor_fingerprint
