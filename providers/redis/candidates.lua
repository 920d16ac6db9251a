-- What may enter the context of one run: walked in order in the sets that hold nothing else, measured
-- by the heads, and read only as far as it is within the bound. Whether the bound ended it; the heads,
-- each with its newest revision.
local limit = request.limit

local function members(name)
    return redis.call('ZRANGEBYLEX', key(name), '-', '+', 'LIMIT', 0, limit)
end

-- The agent's own memories and those that are shared; its own that are shared stand in both.
local function merged(first, second)
    local both, i, j = {}, 1, 1
    while #both < limit and (first[i] or second[j]) do
        local one, other = first[i], second[j]
        if one and (not other or one <= other) then
            both[#both + 1], i = one, i + 1
        else
            both[#both + 1], j = other, j + 1
        end
        if one == other then
            j = j + 1
        end
    end
    return both
end

local parts = {
    members('decisions'),
    merged(members(request.memories), members('shared')),
    members(request.sessions),
}

local found, count, bytes, ended = {}, 0, 0, 0
for _, part in ipairs(parts) do
    for _, member in ipairs(part) do
        if count == limit or ended == 1 or damage then
            break
        end
        local document, head = head_of(string.sub(member, 33))
        if not document or head[PLACE] .. head[RECORD] ~= member then
            damage = 'an index'
            break
        end
        bytes = bytes + head[SIZE]
        if count > 0 and bytes > request.bytes then
            ended = 1
            break
        end
        count = count + 1
        found[#found + 1] = document
        found[#found + 1] = revision_of(head[RECORD], head[REVISION])
    end
end
return answer(ended, found)
