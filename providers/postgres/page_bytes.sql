CASE WHEN /* bytes */ IS NOT NULL THEN
                octet_length(r.type) + octet_length(r.content) + coalesce(octet_length(r.title), 0)
                + coalesce(octet_length(r.rationale), 0) + coalesce(octet_length(r.reason), 0)
                + octet_length(array_to_string(r.tags, ''))
                + coalesce(octet_length(r.facet::text), 0)
            END
