-- Takes, acknowledges or releases the lease of one effect, by the server's clock. Whether it was
-- done; the effect and where its delivery stands now.
--
-- request.action  'acquire' | 'acknowledge' | 'release'  request.token  the new one, or the holder's
-- request.lease   milliseconds, for acquire  request.state  what is kept then, for the other two
-- A delivery is {token, when the lease ends in milliseconds, whether delivered, last code, fact id,
-- the fact's sequence}; while there is none nobody ever had the lease.
local TOKEN, ENDS, DELIVERED, CODE, FACT, SEQUENCE = 1, 2, 3, 4, 5, 6
local effect = get('effects', request.effect)
local kept = get('deliveries', request.effect)
local good, told = pcall(cjson.decode, effect or 'null')
local also_good, delivery = pcall(cjson.decode, kept or '[null,null,false,null,null,null]')
local sound = good and also_good and type(delivery) == 'table'
    and (delivery[ENDS] == null or tonumber(delivery[ENDS]))
    and type(delivery[DELIVERED]) == 'boolean'
    and (delivery[CODE] == null or type(delivery[CODE]) == 'string')
    and (not effect or (type(told) == 'table' and told[1] == tag and told[4] == request.effect))
if not sound then
    damage = 'an effect'
end
if damage or not effect or told[2] ~= request.run then
    return answer(0, false, false)
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local pending = key('pending/' .. request.run)
local leased = delivery[ENDS] ~= null and now < tonumber(delivery[ENDS])
local holds = not delivery[DELIVERED] and delivery[TOKEN] == request.token
local done, state = false, request.state

if request.action == 'acquire' then
    local earlier = redis.call('ZRANGEBYSCORE', pending, '-inf', '+inf', 'LIMIT', 0, 1)
    done = not delivery[DELIVERED] and not leased and earlier[1] == request.effect
    state = cjson.encode({
        request.token, string.format('%.0f', now + request.lease), false, delivery[CODE], null, null,
    })
elseif request.action == 'acknowledge' then
    done = holds and leased
else
    done = holds
end
if not done then
    return answer(0, effect, kept)
end
for name, kind in pairs({deliveries = 'hash', ['pending/' .. request.run] = 'zset'}) do
    local found = redis.call('TYPE', key(name)).ok
    if found ~= kind and found ~= 'none' then
        return {'damaged', string.match(name, '^[^/]+')}
    end
end
-- A right that is missing stops all of it, too, and so does a lack of memory: here there is nothing
-- to change. ZADD needs memory and ZREM does not, so that it comes first; see commit.lua.
redis.call('ZADD', pending, 'XX', 0, '\0')
redis.call('ZREM', pending, '\0')
redis.call('HSET', key('deliveries'), request.effect, state)
if request.action == 'acknowledge' then
    redis.call('ZREM', pending, request.effect)
end
return written(1, effect, state)
