-- Undelivered effects of one run in stream order: the receipt id of each, the effect, and where its
-- delivery stands.
local after = '(' .. request.after
local pending = key('pending/' .. request.run)
local found = {}
local ids = redis.call('ZRANGEBYSCORE', pending, after, '+inf', 'LIMIT', 0, request.limit)
for i, receipt_id in ipairs(ids) do
    local effect = get('effects', receipt_id)
    if not effect then
        damage = 'an effect'
    end
    found[#found + 1] = receipt_id
    found[#found + 1] = effect
    found[#found + 1] = get('deliveries', receipt_id)
end
return answer(found)
