-- A stretch of an agent's memories by their place: where the walk ended, or '' at its end, and the
-- heads that may fit, each with its newest revision.
--
-- request.sets  where they stand, each by place  request.low, request.high  from where to where
-- request.tags  as heads have them, as JSON      request.room  how many heads are enough
local HEADS, BYTES = 500, 1048576

local function members(set)
    return redis.call('ZRANGEBYLEX', key(set), request.low, request.high, 'LIMIT', 0, HEADS)
end

-- Whether all tags may be among those of a head: its text is looked at, which is not taken apart.
local function may_fit(document)
    for i, tagged in ipairs(request.tags) do
        if not string.find(document, tagged, 1, true) then
            return false
        end
    end
    return true
end

local lists, places = {}, {}
for i, set in ipairs(request.sets) do
    lists[i], places[i] = members(set), 1
end

-- The next member of all sets.
local function following()
    local least
    for i, list in ipairs(lists) do
        local member = list[places[i]]
        if member and (not least or is_before(member, lists[least][places[least]])) then
            least = i
        end
    end
    if least then
        places[least] = places[least] + 1
        return lists[least][places[least] - 1]
    end
end

local found, walked, read, low = {}, 0, 0, ''
while walked < HEADS do
    local member = following()
    if not member or damage then
        low = ''
        break
    end
    walked, low = walked + 1, '(' .. member
    local record_id = string.sub(member, 33)
    local document = get('heads', record_id)
    read = read + #(document or '')
    if not document then
        damage = 'an index'
    elseif may_fit(document) then
        local head = apart(document, record_id)
        if head and head[PLACE] .. record_id ~= member then
            damage = 'an index'
        elseif head then
            local revision = revision_of(record_id, head[REVISION]) or ''
            read = read + #revision
            found[#found + 1] = document
            found[#found + 1] = revision
        end
    end
    if read >= BYTES or #found == 2 * request.room then
        break
    end
end
return answer(low, found)
