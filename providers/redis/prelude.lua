-- Begins every script: is this the resource, and can the server lose nothing? Nothing is read or
-- written else. Then what the scripts have in common.
--
-- KEYS[1] the marker  KEYS[2] what begins every key of the project  KEYS[3] how many writes there were
-- ARGV[1] the marker's value  [2] number of the database  [3] 'fields' where fields of a hash can
-- expire, 'doubted' where the append-only file was seen to be off or unfit before
-- [4] what begins every document of the project  [5] the request, as JSON  [6] and on: documents
local REWRITTEN_SIZE_MIN = 67108864

local function info(section, name)
    return string.match(redis.call('INFO', section), '\n' .. name .. ':([^\r\n]*)')
end

local function unfit()
    local found = {}
    local function demand(holds, fact)
        if not holds then
            found[#found + 1] = fact
        end
    end
    local replication = redis.call('INFO', 'replication')
    demand(string.find(replication, '\nrole:master\r', 1, true), 'replica')
    demand(string.find(replication, '\nconnected_slaves:0\r', 1, true), 'replicas')
    local persistence = redis.call('INFO', 'persistence')
    demand(string.find(persistence, '\naof_enabled:1\r', 1, true), 'aof_off')
    demand(string.find(persistence, '\naof_last_write_status:ok\r', 1, true), 'aof_failed')
    -- A file that was switched on while the server ran takes nothing in until it is rewritten, and a
    -- crash before that loses all; the server calls it enabled all the same. Such a rewrite looks
    -- like any other, but for its occasion: others begin once the file has grown, from a base of 0
    -- where the server began with nothing. A file that was just switched on begins at 0 too, and is
    -- doubted by whoever did not see the server fit before it grew.
    local size = tonumber(string.match(persistence, '\naof_current_size:(%d+)') or 0)
    local base = tonumber(string.match(persistence, '\naof_base_size:(%d+)') or 0)
    local has_grown = size >= 2 * base and size >= REWRITTEN_SIZE_MIN
    demand((has_grown and not string.find(ARGV[3], 'doubted', 1, true))
        or (string.find(persistence, '\naof_rewrite_in_progress:0\r', 1, true)
        and string.find(persistence, '\naof_rewrite_scheduled:0\r', 1, true)), 'aof_begins')
    demand(info('memory', 'maxmemory_policy') == 'noeviction', 'eviction')
    demand(info('stats', 'evicted_keys') == '0', 'evicted')
    local keys = info('keyspace', 'db' .. ARGV[2]) or ''
    demand(string.find(keys, ',expires=0,', 1, true), 'expiring_key')
    local fields = string.match(keys, ',keys_with_volatile_items=(%d+)')
        or string.match(keys, ',subexpiry=(%d+)')
    demand(fields == '0' or (not fields and not string.find(ARGV[3], 'fields', 1, true)), 'expiring_field')
    return found
end

local marker = redis.call('GET', KEYS[1])
if marker ~= ARGV[1] then
    return {'marker', marker}
end
local facts = unfit()
if #facts > 0 then
    return {'unfit', facts}
end

local tag = ARGV[4]
local request = cjson.decode(ARGV[5])
local null = cjson.null
local damage

local function key(name)
    return KEYS[2] .. name
end

local function get(hash, field)
    return redis.call('HGET', key(hash), field)
end

-- The values of some fields, at most a few thousand, in one command.
local function get_all(hash, fields)
    return #fields == 0 and {} or redis.call('HMGET', key(hash), unpack(fields))
end

-- What a count is that is kept as this text; 0 where there is none.
local function counted(value)
    if not string.find(value or '0', '^%d+$') then
        damage = 'a count'
        return 0
    end
    return tonumber(value or '0')
end

local function count(hash, field)
    return counted(get(hash, field))
end

-- What scripts look at of a head.
local RECORD, REVISION, REVISION_ID, AGENT, KIND, STATE, TRUST = 2, 3, 4, 5, 6, 7, 8
local SUPERSEDED, IMPORTANCE, SIZE, ORDER, PLACE, ENTERED, TAGS = 9, 10, 11, 12, 13, 14, 15
local LISTED, MOVED, RECALLED = 16, 17, 18

local type = type

-- Whether it is such that nothing that is done with it can fail. Not a loop: it is asked of every
-- head that a search passes.
local function is_head(head)
    return type(head) == 'table' and head[1] == tag
        and type(head[REVISION]) == 'number' and head[REVISION] >= 1
        and type(head[REVISION_ID]) == 'string' and type(head[AGENT]) == 'string'
        and (head[SUPERSEDED] == null or type(head[SUPERSEDED]) == 'string')
        and type(head[IMPORTANCE]) == 'number' and type(head[SIZE]) == 'number'
        and type(head[ORDER]) == 'string' and type(head[PLACE]) == 'string'
        and type(head[ENTERED]) == 'table' and type(head[TAGS]) == 'table'
        and type(head[LISTED]) == 'boolean' and type(head[MOVED]) == 'boolean'
        and type(head[RECALLED]) == 'string'
end

-- A head that is kept, taken apart; nothing when it is not that of the record.
local function apart(document, record_id)
    local good, head = pcall(cjson.decode, document)
    if not good or not is_head(head) or head[RECORD] ~= record_id then
        damage = 'a head'
        return
    end
    return head
end

-- The head of a record as it is kept, and taken apart; nothing when there is none.
local function head_of(record_id)
    local document = get('heads', record_id)
    local head = document and apart(document, record_id)
    if head then
        return document, head
    end
end

local function revision_of(record_id, number)
    local document = get('revisions', string.format('%d/%s', number, record_id))
    if not document then
        damage = 'a revision'
    end
    return document
end

-- An entry as it is kept, taken apart: its length, the bytes of its vector, that one's model or '',
-- and where it begins; nothing when it is none of this record.
local function entry_of(record_id, entry)
    local project, record, length, bytes, model, at =
        string.match(entry, '^(%x+)%z([^%z]+)%z(%d+)%z(%d+)%z([^%z]*)%z()')
    local is_whole = project == tag and record == record_id and #entry >= at + bytes
        and string.byte(entry, at + bytes) == 10 and string.byte(entry, -1) == 10
    if not is_whole then
        damage = 'an entry'
        return 0, 0, '', 0
    end
    return tonumber(length), tonumber(bytes), model, at
end

-- Memories that are not forgotten stand in one set, by what they are found by: first those without an
-- entry, then those without a vector, then by the vector's model.
local function is_findable(head)
    return head[KIND] == 'memory' and head[STATE] ~= 'forgotten'
end

local function member_of(record_id, entry)
    if not entry then
        return '0\0' .. record_id
    end
    local _, _, model = entry_of(record_id, entry)
    return '1' .. model .. '\0' .. record_id
end

-- Texts compare by the server's language otherwise.
local function is_before(one, other)
    for i = 1, math.min(#one, #other) do
        local first, second = string.byte(one, i), string.byte(other, i)
        if first ~= second then
            return first < second
        end
    end
    return #one < #other
end

-- The first two of the three lines of a revision.
local function brief(document)
    local first = string.find(document, '\n', 1, true)
    local second = first and string.find(document, '\n', first + 1, true)
    if not second then
        damage = 'a revision'
        return document
    end
    return string.sub(document, 1, second - 1)
end

local function full_size(document)
    return tonumber(string.match(document, '^%d+ (%d+)\n')) or 0
end

-- Every write of the resource is counted: who saw a higher count than there is knows of a loss.
local writes = tonumber(redis.call('HGET', KEYS[3], 'count') or 0) or 0

local function answer(...)
    if damage then
        return {'damaged', damage}
    end
    return {'ok', writes, ...}
end

-- What a script that writes ends with.
local function written(...)
    redis.call('HSET', KEYS[3], 'count', string.format('%.0f', writes + 1))
    return {'ok', writes + 1, ...}
end

