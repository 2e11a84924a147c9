-- Replaces reservations by the actual costs of their requests.

local function settle_one(scope, reserved, arrived, cost)
    if reserved ~= '0' then add(scope, 'reserved', '-' .. reserved) end
    local is_earlier = arrived < scope.arrived_before
    if cost ~= 0 then add(scope, is_earlier and 'base' or 'after', cost) end
    if not is_earlier and arrived > scope.last then put(scope, 'last', arrived) end
end

-- Removes the reservations of ended requests; returns those that were there. A request that was taken from an allowance and
-- ended before Redis learned of it has none.
local function take_held(scope)
    local names, held = {}, {}
    for index, name in ipairs(scope.ended) do
        if scope.sources[index] == 0 then names[#names + 1] = name end
    end
    if #names == 0 then return held end
    local scores = redis.call('ZMSCORE', scope.reservations, unpack(names))
    redis.call('ZREM', scope.reservations, unpack(names))
    for index, name in ipairs(names) do held[name] = scores[index] end
    return held
end

-- Settles all ended requests of a scope. Adds the scope's flag to the answers for those that were not counted; they put
-- the scope in doubt.
local function settle_all(scope, answers)
    local names = scope.ended
    if #names == 0 then return end
    local held = take_held(scope)
    local lost
    for index, name in ipairs(names) do
        local reserved, arrived = parts(name)
        if scope.holds[scope.sources[index]] then
            -- What was reserved for it was part of the allowance.
            settle_one(scope, '0', arrived, scope.costs[index])
        elseif held[name] then
            settle_one(scope, reserved, arrived, scope.costs[index])
        else
            -- The request log has this request or will have it soon, so counting it here could count it twice.
            lost = math.max(lost or 0, arrived)
            local row = scope.rows[index]
            answers[row] = answers[row] + scope.flags[index]
        end
    end
    if lost then doubt_scope(scope, lost) end
end
