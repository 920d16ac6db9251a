-- Everything that one call needs to decide. What is absent is false.
local heads, revisions, holders, counters, chain = {}, {}, {}, {}, {}
for i, record_id in ipairs(request.heads) do
    local document, head = head_of(record_id)
    if document then
        heads[#heads + 1] = record_id
        heads[#heads + 1] = document
        heads[#heads + 1] = revision_of(record_id, head[REVISION])
    end
end
for i, field in ipairs(request.revisions) do
    revisions[i] = get('revisions', field)
end
for i, name in ipairs(request.keys) do
    holders[i] = get('keys', name)
end
for i, name in ipairs(request.counters) do
    counters[i] = get('counters', name)
end

-- Ends at a record without a link, a missing one, or the first repetition, which is included.
local at, seen = request.chain, {}
while at ~= null and #chain < request.links do
    local document, head = head_of(at)
    if not document then
        break
    end
    chain[#chain + 1] = document
    if seen[at] then
        break
    end
    seen[at] = true
    at = head[SUPERSEDED]
end

local receipt = request.receipt ~= null and get('receipts', request.receipt)
return answer(receipt, holders, counters, heads, revisions, chain)
