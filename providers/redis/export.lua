-- Whole chains of one agent: counted first, then read. What was passed, or ''; then for each record
-- its head and a list of its revisions, oldest first.
local most = request.most

local function moved(record_id)
    local document, head = head_of(record_id)
    if document and head[AGENT] == request.agent and head[MOVED] then
        return document, head
    end
end

-- The walk ends with the first record that is too many.
local function reached()
    local ids, at, seen = {}, 1, {}
    local function reach(record_id)
        if not seen[record_id] and #ids <= most[1] then
            seen[record_id] = true
            if moved(record_id) then
                ids[#ids + 1] = record_id
            end
        end
    end
    for i, record_id in ipairs(request.records) do
        reach(record_id)
    end
    while ids[at] do
        for i, record_id in ipairs(redis.call('HKEYS', key('links/' .. ids[at]))) do
            reach(record_id)
        end
        at = at + 1
    end
    return ids
end

local ids
if #request.records > 0 then
    ids = reached()
else
    local name = key('moved/' .. request.agent)
    ids = redis.call('ZRANGEBYLEX', name, '-', '+', 'LIMIT', 0, most[1] + 1)
end
if #ids > most[1] then
    return answer('records')
end

local chosen, revisions, bytes = {}, 0, 0
for i, record_id in ipairs(ids) do
    local document, head = moved(record_id)
    if not document then
        damage = 'an index'
        return answer()
    end
    chosen[#chosen + 1] = {document, record_id, head[REVISION]}
    revisions = revisions + head[REVISION]
    bytes = bytes + count('bytes', record_id)
end
if revisions > most[2] then
    return answer('revisions')
end
if bytes > most[3] then
    return answer('bytes')
end

local found = {}
for i, each in ipairs(chosen) do
    local chain = {}
    for number = 1, each[3] do
        chain[number] = revision_of(each[2], number)
    end
    found[#found + 1] = each[1]
    found[#found + 1] = chain
end
return answer('', found)
