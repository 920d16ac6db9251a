-- A stretch of a page of heads: walks from request.low on, through at most so many heads and so much
-- text that nobody else waits long. Where the walk ended, or '' at its end; whether more follow; the
-- bytes of the page so far; the heads found, each with its newest revision.
local HEADS, BYTES, STEP = 500, 1048576, 100
-- A text costs its length, and as much again for each so many bytes that are looked for in it.
local NEEDLE = 64

local function smallest()
    local agent, found, least = request.agent, nil, nil
    for i, tagged in ipairs(request.tags) do
        local name = 'tagged/' .. tagged
        if agent ~= null then
            name = string.format('tagged-by/%d/%s/%s', #agent, agent, tagged)
        end
        local size = redis.call('ZCARD', key(name))
        if not least or size < least then
            found, least = name, size
        end
    end
    return found or (agent == null and 'order' or 'order/' .. agent)
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

local set, low = key(smallest()), request.low
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
    local members = redis.call('ZRANGEBYLEX', set, low, request.high, 'LIMIT', 0, STEP)
    for i, member in ipairs(members) do
        local document, head = head_of(string.sub(member, 17))
        read = read + #(document or '')
        if not document or head[ORDER] .. head[RECORD] ~= member then
            damage = 'an index'
        elseif fits(head) then
            take(document, head)
        end
        low = '(' .. member
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
