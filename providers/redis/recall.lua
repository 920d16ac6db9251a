-- A stretch of the memories that recall looks through, so long that nobody else waits long: by record
-- id, so that none is missed or met twice because others write meanwhile. How many there are; where
-- the walk ended, or '' at its end; of those that are not found how many have an entry, how long these
-- are together, and how many have none; of the others {record id, length, the lines of the terms that
-- are looked for, the numbers of the vector or nothing, the head}, one behind the other.
--
-- request.set      where they stand  request.live  where those stand that are active, if only these
--                  are looked through, or null
-- request.most     how many there may be  request.low  from where to walk
-- request.needles  what stands before the counts of the terms, in the terms' order
-- request.model, request.bytes  of the vectors that are compared, or null
local RECORDS, BYTES = 500, 1048576
-- An entry costs its length, and as much again for each so many terms that are looked for in it.
local TERMS = 4

local total = redis.call('ZLEXCOUNT', key(request.live == null and request.set or request.live), '-', '+')
if total > request.most then
    return answer(total)
end

-- The lines of the terms that an entry holds, of those looked for.
local function held(entry, at)
    local lines = ''
    for i, needle in ipairs(request.needles) do
        local first, last = string.find(entry, needle, at, true)
        if first then
            local line = string.match(entry, '^%d+\n', last + 1)
            if not line then
                damage = 'an entry'
                break
            end
            lines = lines .. string.sub(needle, 2) .. line
        end
    end
    return lines
end

local begin, weight = '["' .. tag .. '"', 1 + #request.needles / TERMS
local found, indexed, length_total, bare, read = {}, 0, 0, 0, 0

local function look(record_id)
    local head, entry = get('heads', record_id), get('entries', record_id)
    if not head or string.sub(head, 1, #begin) ~= begin then
        damage = 'an index'
        return
    end
    if not entry then
        bare = bare + 1
        return
    end
    local length, bytes, model, at = entry_of(record_id, entry)
    local lines = held(entry, at + bytes)
    local is_alike = model == request.model and bytes == request.bytes
    read = read + bytes + (#entry - bytes) * weight
    if lines == '' and not is_alike then
        indexed, length_total = indexed + 1, length_total + length
        return
    end
    read = read + #head
    local size = #found
    found[size + 1], found[size + 2], found[size + 3] = record_id, length, lines
    found[size + 4] = is_alike and string.sub(entry, at, at + bytes - 1)
    found[size + 5] = head
end

-- A record id, NUL, and whether it is live or was replaced.
local members = redis.call('ZRANGEBYLEX', key(request.set), request.low, '+', 'LIMIT', 0, RECORDS)
local low = #members == RECORDS and '(' .. members[RECORDS] or ''
for i, member in ipairs(members) do
    local record_id, standing = string.match(member, '^([^%z]+)%z(%l)$')
    if not record_id then
        damage = 'an index'
    elseif request.live == null or standing == 'l' then
        look(record_id)
    end
    if damage then
        break
    end
    if read >= BYTES and i < #members then
        low = '(' .. record_id .. '\1'
        break
    end
end
return answer(total, low, indexed, length_total, bare, found)
