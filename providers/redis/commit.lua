-- Applies one write set, or nothing and tells what it met. All that is to be known is read first;
-- from the first write on nothing is read and nothing can be refused.
--
-- request.receipt  the field of the receipt; ARGV[6] is the receipt
-- request.effect   {receipt id, run, sequence, the effect} or null
-- request.heads    {record id, expected revision or 0, expected revision id, head, search text,
--                   bytes that its new revisions add, links they have}
-- request.revisions  {field, revision id}; their documents are ARGV[7] and on
-- request.keys     {key, 'claim' | 'release' | 'bury' | '', record id, held by or null, whether a
--                   tombstone is in the way, what the key is to hold}
-- request.counters {name, expected or null}
local open = true
local function demand(holds)
    open = open and holds
end

local receipt = get('receipts', request.receipt)
demand(not receipt)

local old, heads, bytes = {}, {}, {}
for i, put in ipairs(request.heads) do
    bytes[i] = count('bytes', put[1])
    local document, head = head_of(put[1])
    if document then
        old[i] = head
        heads[#heads + 1] = put[1]
        heads[#heads + 1] = string.format('%d', head[REVISION])
        heads[#heads + 1] = head[REVISION_ID]
        demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])
    else
        demand(put[2] == 0)
    end
end

local used = {}
for i, revision in ipairs(request.revisions) do
    if redis.call('HEXISTS', key('revision_ids'), revision[2]) == 1 then
        used[#used + 1] = revision[2]
        open = false
    end
end

-- A key holds 'r' and a record id, or 't' and a tombstone.
local holders, held = {}, {}
for i, asked in ipairs(request.keys) do
    held[i] = get('keys', asked[1])
    holders[i] = held[i]
    local first = held[i] and string.sub(held[i], 1, 1)
    demand(not (asked[5] and first == 't'))
    if asked[2] == 'claim' then
        local holder = first == 'r' and string.sub(held[i], 2) or null
        demand(first ~= 't' and holder == asked[4])
    end
end

local counters, values = {}, {}
for i, asked in ipairs(request.counters) do
    values[i] = count('counters', asked[1])
    counters[i] = string.format('%.0f', values[i])
    demand(asked[2] == null or asked[2] == values[i])
end

local effect = request.effect
local is_told = effect ~= null and redis.call('HEXISTS', key('effects'), effect[1]) or 0
demand(is_told == 0)

if damage or not open then
    return answer('refused', receipt, holders, counters, heads, used, is_told)
end

-- Every key that is to be written, so that a key of another type stops all of it.
local types, sets = {}, {}
local function expect(kind, name)
    if types[name] and types[name] ~= kind then
        damage = 'a head'
    end
    types[name] = kind
    return key(name)
end
local function in_order(head, record_id, change)
    local member = head[ORDER] .. record_id
    if head[LISTED] then
        local agent = head[AGENT]
        change('order', member)
        change('order/' .. agent, member)
        for i, tagged in ipairs(head[TAGS]) do
            change('tagged/' .. tagged, member)
            change(string.format('tagged-by/%d/%s/%s', #agent, agent, tagged), member)
        end
    end
    if head[MOVED] then
        change('moved/' .. head[AGENT], record_id)
    end
    for i, name in ipairs(head[ENTERED]) do
        change(name, head[PLACE] .. record_id)
    end
end
local function later(command)
    return function(name, member)
        sets[#sets + 1] = {command, expect('zset', name), member}
    end
end

local leave, enter = later('ZREM'), later('ZADD')
for i, put in ipairs(request.heads) do
    if old[i] then
        in_order(old[i], put[1], leave)
    end
    in_order(cjson.decode(put[4]), put[1], enter)
    for _, target in ipairs(put[7]) do
        expect('hash', 'links/' .. put[1])
    end
end
local hashes = {'receipts', 'heads', 'texts', 'revisions', 'revision_ids', 'bytes', 'keys', 'counters'}
for i, name in ipairs(hashes) do
    expect('hash', name)
end
if effect ~= null then
    expect('hash', 'effects')
    expect('zset', 'pending/' .. effect[2])
end
for name, kind in pairs(types) do
    local found = redis.call('TYPE', key(name)).ok
    if found ~= kind and found ~= 'none' then
        damage = string.match(name, '^[^/]+')
    end
end
if damage then
    return answer()
end

-- A right that is missing stops all of it, too: here each command has nothing to change, but for the
-- HSET that is the first to write. ZADD comes before those that need no memory: a server that takes
-- scripts without flags looks for memory at the first that writes, and at none after it.
redis.call('ZADD', key('order'), 'XX', 0, '')
redis.call('ZREM', key('order'), '')
redis.call('HDEL', key('receipts'), request.receipt)

for i, put in ipairs(request.heads) do
    redis.call('HSET', key('heads'), put[1], put[4])
    if put[5] == null then
        redis.call('HDEL', key('texts'), put[1])
    else
        redis.call('HSET', key('texts'), put[1], put[5])
    end
    redis.call('HSET', key('bytes'), put[1], string.format('%.0f', bytes[i] + put[6]))
    for _, target in ipairs(put[7]) do
        redis.call('HSET', key('links/' .. put[1]), target, '')
    end
end
for i, revision in ipairs(request.revisions) do
    redis.call('HSET', key('revisions'), revision[1], ARGV[6 + i])
    redis.call('HSET', key('revision_ids'), revision[2], '')
end
for i, set in ipairs(sets) do
    if set[1] == 'ZADD' then
        redis.call('ZADD', set[2], 0, set[3])
    else
        redis.call('ZREM', set[2], set[3])
    end
end
for i, asked in ipairs(request.keys) do
    if asked[2] == 'claim' or asked[2] == 'bury' then
        redis.call('HSET', key('keys'), asked[1], asked[6])
    elseif asked[2] == 'release' and held[i] == 'r' .. asked[3] then
        redis.call('HDEL', key('keys'), asked[1])
    end
end
for i, asked in ipairs(request.counters) do
    redis.call('HSET', key('counters'), asked[1], string.format('%.0f', values[i] + 1))
end
if effect ~= null then
    redis.call('HSET', key('effects'), effect[1], effect[4])
    redis.call('ZADD', key('pending/' .. effect[2]), effect[3], effect[1])
end
-- Last, so that nothing is taken for done that is not.
redis.call('HSET', key('receipts'), request.receipt, ARGV[6])
return written('applied')
