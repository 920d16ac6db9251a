-- A page of a project's memories that lack an entry or a vector: heads, each with its newest revision.
--
-- request.after  the record id that the page before ended with  request.limit
-- request.model  the model of the vectors that are wanted, or null: an entry is enough
local indexed = key('indexed')
local ids = {}

local function add(group)
    local first, last = '(' .. group .. '\0' .. request.after, '(' .. group .. '\1'
    local members = redis.call('ZRANGEBYLEX', indexed, first, last, 'LIMIT', 0, request.limit)
    for i, member in ipairs(members) do
        ids[#ids + 1] = string.sub(member, #group + 2)
    end
end

if request.model == null then
    add('0')
else
    -- From each group to the next: there are as many as models.
    local low = '-'
    while true do
        local group = string.match(
            redis.call('ZRANGEBYLEX', indexed, low, '+', 'LIMIT', 0, 1)[1] or '', '^([^%z]+)%z'
        )
        if not group then
            break
        end
        if group ~= '1' .. request.model then
            add(group)
        end
        low = '(' .. group .. '\1'
    end
    table.sort(ids, is_before)
end

local found = {}
for i = 1, math.min(#ids, request.limit) do
    local document, head = head_of(ids[i])
    if not document then
        damage = 'an index'
        break
    end
    found[#found + 1] = document
    found[#found + 1] = revision_of(ids[i], head[REVISION])
end
return answer(found)
