-- A stretch of a page of heads: walks from request.low on, through at most so many heads and so much
-- text that nobody else waits long. Where the walk ended, or '' at its end; whether more follow; the
-- bytes of the page so far; the heads found, each with its newest revision.
local HEADS, BYTES, STEP = 500, 1048576, 100
-- A text costs its length, and as much again for each so many bytes that are looked for in it.
local NEEDLE = 64

-- The set to walk, and what all of its members begin with that are walked: the tag that fewest have.
local function smallest()
    local whose = request.agent == null and '' or '/' .. request.agent
    local tag, least
    for i, tagged in ipairs(request.tags) do
        local first, last = '[' .. tagged .. '\0', '(' .. tagged .. '\1'
        local size = redis.call('ZLEXCOUNT', key('tagged' .. whose), first, last)
        if not least or size < least then
            tag, least = tagged, size
        end
    end
    if tag then
        return key('tagged' .. whose), tag .. '\0', '(' .. tag .. '\1'
    end
    return key('order' .. whose), '', '+'
end

local function listed(values, value)
    return values == null or values[value]
end

local function has_tags(tags)
    local held = {}
    for i, each in ipairs(tags) do
        held[each] = true
    end
    for i, each in ipairs(request.tags) do
        if not held[each] then
            return false
        end
    end
    return true
end

local read = 0
local function has_text(record_id)
    local text = get('texts', record_id)
    if not text then
        damage = 'a search text'
        return false
    end
    read = read + #text * (1 + math.floor(#request.text / NEEDLE))
    return string.find(text, request.text, 1, true) ~= nil
end

local function fits(head)
    return listed(request.kinds, head[KIND])
        and listed(request.states, head[STATE])
        and listed(request.trusts, head[TRUST])
        and (request.least == null or head[IMPORTANCE] >= request.least)
        and (request.most == null or head[IMPORTANCE] <= request.most)
        and has_tags(head[TAGS])
        and (request.text == null or has_text(head[RECORD]))
end

local set, begin, last = smallest()
-- A bound of the order, as one of the set.
local function bound(given)
    if given == '+' then
        return last
    elseif given == '-' then
        return begin == '' and given or '[' .. begin
    end
    return string.sub(given, 1, 1) .. begin .. string.sub(given, 2)
end

local low, high = request.low, bound(request.high)
local found, bytes, walked, more, done = {}, request.used, 0, 0, false

local function take(document, head)
    if request.room * 2 == #found then
        more, done = 1, true
        return
    end
    local revision = revision_of(head[RECORD], head[REVISION])
    if damage then
        return
    end
    bytes = bytes + full_size(revision)
    if request.bytes ~= null and bytes > request.bytes and (request.used > 0 or #found > 0) then
        more, done = 1, true
        return
    end
    found[#found + 1] = document
    found[#found + 1] = request.brief and brief(revision) or revision
end

while not done and not damage and walked < HEADS and read < BYTES do
    local members = redis.call('ZRANGEBYLEX', set, bound(low), high, 'LIMIT', 0, STEP)
    for i, member in ipairs(members) do
        local place = string.sub(member, #begin + 1)
        local document, head = head_of(string.sub(place, 17))
        read = read + #(document or '')
        if not document or head[ORDER] .. head[RECORD] ~= place then
            damage = 'an index'
        elseif fits(head) then
            take(document, head)
        end
        low = '(' .. place
        walked = walked + 1
        if done or damage or read >= BYTES then
            break
        end
    end
    if #members < STEP and not done and read < BYTES then
        low, done = '', true
    end
end
if more == 1 then
    low = ''
end
return answer(low, more, bytes, found)
