-- Applies one write set, or nothing and tells what it met. All that is to be known is read first;
-- from the first write on nothing is read and nothing can be refused.
--
-- request.receipt  the field of the receipt; ARGV[6] is the receipt
-- request.effect   {receipt id, run, sequence, the effect} or null
-- request.heads    {record id, expected revision or 0, expected revision id, bytes that its new
--                   revisions add, links they have, whether it is a memory that is not forgotten}
-- request.revisions  {field, revision id}; their documents are ARGV[7] and on, and behind them for
--                   each head it, its search text, which is empty where nobody finds it, and its
--                   entry, which is empty where it keeps the one it has
-- request.sets     {name, first, last}: what the heads enter, counted behind all of these
-- request.keys     {key, 'claim' | 'release' | 'bury' | '', record id, held by or null, whether a
--                   tombstone is in the way, what the key is to hold}
-- request.counters {name, expected or null}
local open = true
local function demand(holds)
    open = open and holds
end

local receipt = get('receipts', request.receipt)
demand(not receipt)

local CANDIDATES = {
    decisions = true, shared = true, ['memories/'] = true, ['sessions/'] = true, ['replaced/'] = true,
}

local function are_strings(values)
    for i, each in ipairs(values) do
        if type(each) ~= 'string' then
            return false
        end
    end
    return true
end

-- Of context candidates and of what they replaced: what is listed there is written to.
local function are_sets(names)
    if not are_strings(names) then
        return false
    end
    for i, each in ipairs(names) do
        local first = string.match(each, '^[^/]*/') or each
        if not CANDIDATES[first] then
            return false
        end
    end
    return true
end

local function firsts(lists, at)
    local found = {}
    for i, each in ipairs(lists) do
        found[i] = each[at]
    end
    return found
end

local old, heads, bytes = {}, {}, {}
local names = firsts(request.heads, 1)
local kept, sizes = get_all('heads', names), get_all('bytes', names)
for i, put in ipairs(request.heads) do
    bytes[i] = counted(sizes[i])
    local head = kept[i] and apart(kept[i], put[1])
    if head then
        old[i] = head
        if not are_sets(head[ENTERED]) or not are_strings(head[TAGS]) then
            damage = 'a head'
        end
        heads[#heads + 1] = put[1]
        heads[#heads + 1] = string.format('%d', head[REVISION])
        heads[#heads + 1] = head[REVISION_ID]
        demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])
    else
        demand(put[2] == 0)
    end
end

local used = {}
local ids = firsts(request.revisions, 2)
for i, found in ipairs(get_all('revision_ids', ids)) do
    if found then
        used[#used + 1] = ids[i]
        open = false
    end
end

-- A key holds 'r' and a record id, or 't' and a tombstone.
local held = get_all('keys', firsts(request.keys, 1))
for i, asked in ipairs(request.keys) do
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
local is_told = effect ~= null and get('effects', effect[1]) and 1 or 0
demand(is_told == 0)

if damage or not open then
    return answer('refused', receipt, held, counters, heads, used, is_told)
end

-- What is to be written, by command and key: each is sent once, however many values it takes.
local KINDS = {HSET = 'hash', HDEL = 'hash', ZREM = 'zset', ZADD = 'zset'}
local writes_of, types = {HSET = {}, HDEL = {}, ZREM = {}, ZADD = {}}, {}
local function values_of(command, name)
    local kind = KINDS[command]
    if types[name] and types[name] ~= kind then
        damage = 'a head'
    end
    types[name] = kind
    local values = writes_of[command][name] or {}
    writes_of[command][name] = values
    return values
end
local function later(command, name, first, second)
    local values = values_of(command, name)
    values[#values + 1] = first
    values[#values + 1] = second
end
local function leave(head)
    local member, agent = head[ORDER] .. head[RECORD], head[AGENT]
    if head[LISTED] then
        later('ZREM', 'order', member)
        later('ZREM', 'order/' .. agent, member)
        local all, own = values_of('ZREM', 'tagged'), values_of('ZREM', 'tagged/' .. agent)
        for i, tagged in ipairs(head[TAGS]) do
            local each = tagged .. '\0' .. member
            all[#all + 1] = each
            own[#own + 1] = each
        end
    end
    if head[MOVED] then
        later('ZREM', 'moved/' .. agent, head[RECORD])
    end
    if head[RECALLED] ~= '' then
        later('ZREM', 'recalled/' .. agent, head[RECORD] .. '\0' .. head[RECALLED])
    end
    for i, name in ipairs(head[ENTERED]) do
        later('ZREM', name, head[PLACE] .. head[RECORD])
    end
end

-- Where a memory stands by its entry changes with the entry, and where it is forgotten.
local function index(record_id, head, is_one, entry)
    local was_one = head ~= nil and is_findable(head)
    if entry == '' and was_one == is_one then
        return
    end
    local before = head and get('entries', record_id)
    if was_one then
        later('ZREM', 'indexed', member_of(record_id, before))
    end
    if is_one then
        later('ZADD', 'indexed', '0', member_of(record_id, entry ~= '' and entry or before))
    end
    if entry ~= '' then
        later('HSET', 'entries', record_id, entry)
    end
end

local at = 6
for i, revision in ipairs(request.revisions) do
    at = at + 1
    later('HSET', 'revisions', revision[1], ARGV[at])
    later('HSET', 'revision_ids', revision[2], '')
end
for i, put in ipairs(request.heads) do
    local head, text = ARGV[at + 1], ARGV[at + 2]
    index(put[1], old[i], put[6], ARGV[at + 3])
    at = at + 3
    if old[i] then
        leave(old[i])
    end
    later('HSET', 'heads', put[1], head)
    if text == '' then
        later('HDEL', 'texts', put[1])
    else
        later('HSET', 'texts', put[1], text)
    end
    later('HSET', 'bytes', put[1], string.format('%.0f', bytes[i] + put[4]))
    for _, target in ipairs(put[5]) do
        later('HSET', 'links/' .. put[1], target, '')
    end
end
for i, set in ipairs(request.sets) do
    local values, size = values_of('ZADD', set[1]), 0
    for number = at + set[2], at + set[3] do
        values[size + 1], values[size + 2], size = '0', ARGV[number], size + 2
    end
end
for i, asked in ipairs(request.keys) do
    if asked[2] == 'claim' or asked[2] == 'bury' then
        later('HSET', 'keys', asked[1], asked[6])
    elseif asked[2] == 'release' and held[i] == 'r' .. asked[3] then
        later('HDEL', 'keys', asked[1])
    end
end
for i, asked in ipairs(request.counters) do
    later('HSET', 'counters', asked[1], string.format('%.0f', values[i] + 1))
end
if effect ~= null then
    later('HSET', 'effects', effect[1], effect[4])
    later('ZADD', 'pending/' .. effect[2], effect[3], effect[1])
end

-- A key of another type stops all of it.
types.receipts = 'hash'
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

-- As many values as one command is given: Lua holds a few thousand. A member that stays leaves first.
local MANY = 1000
for _, command in ipairs({'HSET', 'HDEL', 'ZREM', 'ZADD'}) do
    for name, values in pairs(writes_of[command]) do
        for first = 1, #values, MANY do
            local last = math.min(first + MANY - 1, #values)
            redis.call(command, key(name), unpack(values, first, last))
        end
    end
end
-- Last, so that nothing is taken for done that is not.
redis.call('HSET', key('receipts'), request.receipt, ARGV[6])
return written('applied')
