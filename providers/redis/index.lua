-- Puts entries for memories whose heads are still those that were read, and tells how many.
--
-- request.heads  {record id, revision id}; their entries are ARGV[6] and on
local entries, leaving, entering = {}, {}, {}
for i, asked in ipairs(request.heads) do
    local document, head = head_of(asked[1])
    if document and head[KIND] == 'memory' and head[REVISION_ID] == asked[2] then
        local entry = ARGV[5 + i]
        entries[#entries + 1] = asked[1]
        entries[#entries + 1] = entry
        if is_findable(head) then
            leaving[#leaving + 1] = member_of(asked[1], get('entries', asked[1]))
            entering[#entering + 1] = '0'
            entering[#entering + 1] = member_of(asked[1], entry)
        end
    end
end
for name, kind in pairs({entries = 'hash', indexed = 'zset'}) do
    local found = redis.call('TYPE', key(name)).ok
    if found ~= kind and found ~= 'none' then
        damage = name
    end
end
if damage or #entries == 0 then
    return answer(0)
end
-- A right that is missing stops all of it, too, and so does a lack of memory; see commit.lua.
local indexed = key('indexed')
redis.call('ZADD', indexed, 'XX', 0, '')
redis.call('ZREM', indexed, '')
redis.call('HSET', key('entries'), unpack(entries))
if #leaving > 0 then
    redis.call('ZREM', indexed, unpack(leaving))
    redis.call('ZADD', indexed, unpack(entering))
end
return written(#entries / 2)
