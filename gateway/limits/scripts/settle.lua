-- Replaces reservations by the actual costs of their requests.

local function settle_one(scope, reserved, arrived, cost)
    if reserved ~= '0' then add(scope, 'reserved', '-' .. reserved) end
    local is_earlier = arrived < scope.arrived_before
    if cost ~= 0 then add(scope, is_earlier and 'base' or 'after', cost) end
    if not is_earlier and arrived > scope.last then put(scope, 'last', arrived) end
end

-- Settles all ended requests of a scope. Adds the scope's flag to the answers for those that were not counted; they put
-- the scope in doubt.
local function settle_all(scope, answers)
    local names = scope.ended
    if #names == 0 then return end
    local holds = redis.call('ZMSCORE', scope.reservations, unpack(names))
    redis.call('ZREM', scope.reservations, unpack(names))
    local lost
    for index, name in ipairs(names) do
        local reserved, arrived = parts(name)
        if holds[index] then
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
