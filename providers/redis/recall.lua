-- A stretch of the memories that recall looks through, so long that nobody else waits long. How many
-- there are; all of their names, where they are asked for; and of each that was looked at: nothing
-- where it has no entry, the length of one that is not found, or {length, the lines of the terms that
-- are looked for, the numbers of its vector or nothing, its head}.
--
-- request.sets     where they stand, for the first stretch; behind it request.records are their names
-- request.most     how many there may be
-- request.needles  what stands before the counts of the terms, in the terms' order
-- request.model, request.bytes  of the vectors that are compared, or null
local RECORDS, BYTES = 500, 1048576
-- An entry costs its length, and as much again for each so many terms that are looked for in it.
local TERMS = 4

local records, names, total = request.records, {}, 0
if request.sets ~= null then
    for i, set in ipairs(request.sets) do
        total = total + redis.call('ZLEXCOUNT', key(set), '-', '+')
    end
    if total > request.most then
        return answer(total, names, names)
    end
    for i, set in ipairs(request.sets) do
        for j, member in ipairs(redis.call('ZRANGEBYLEX', key(set), '-', '+')) do
            names[#names + 1] = string.sub(member, 33)
        end
    end
    records = names
end

-- The lines of the terms that an entry holds, of those looked for.
local function held(entry, at)
    local lines = {}
    for i, needle in ipairs(request.needles) do
        local first, last = string.find(entry, needle, at, true)
        if first then
            local line = string.match(entry, '^%d+\n', last + 1)
            if not line then
                damage = 'an entry'
                break
            end
            lines[#lines + 1] = string.sub(needle, 2) .. line
        end
    end
    return table.concat(lines)
end

local read, begin = 0, '["' .. tag .. '"'
local weight = 1 + #request.needles / TERMS

local function looked(record_id)
    local head, entry = get('heads', record_id), get('entries', record_id)
    if not head or string.sub(head, 1, #begin) ~= begin then
        damage = 'an index'
    end
    if damage or not entry then
        return false
    end
    local length, bytes, model, at = entry_of(record_id, entry)
    local lines = held(entry, at + bytes)
    local is_alike = request.model == model and request.bytes == bytes
    read = read + bytes + (#entry - bytes) * weight
    if lines == '' and not is_alike then
        return length
    end
    read = read + #head
    return {length, lines, is_alike and string.sub(entry, at, at + bytes - 1), head}
end

local found = {}
while #found < #records and #found < RECORDS and read < BYTES and not damage do
    found[#found + 1] = looked(records[#found + 1])
end
return answer(total, names, found)
