-- A page of one record's history, newest first: the head's revision or 0, whether older ones
-- follow, and the revisions, behind them the first two lines of the one before the last.
local document, head = head_of(request.record)
if not document or head[AGENT] ~= request.agent or head[STATE] == 'forgotten' then
    return answer('0')
end
local newest = head[REVISION]
if request.before ~= null and request.before <= newest then
    newest = request.before - 1
end
local page, bytes, more = {}, 0, 0
for number = newest, math.max(newest - request.limit + 1, 1), -1 do
    local revision = revision_of(request.record, number)
    if damage then
        break
    end
    bytes = bytes + full_size(revision)
    if request.bytes ~= null and #page > 0 and bytes > request.bytes then
        break
    end
    page[#page + 1] = request.brief and brief(revision) or revision
end
local earlier = newest - #page
if #page > 0 and earlier > 0 and not damage then
    page[#page + 1] = brief(revision_of(request.record, earlier) or '')
    more = 1
end
return answer(string.format('%d', newest), more, page)
