-- Puts what requests cost in the place of what was reserved for them.

local function settle_one(scope, reserved, arrived, cost)
    if reserved ~= '0' then add(scope, 'reserved', '-' .. reserved) end
    local is_earlier = arrived < scope.arrived_before
    if cost ~= 0 then add(scope, is_earlier and 'base' or 'after', cost) end
    if not is_earlier and arrived > scope.last then put(scope, 'last', arrived) end
end

-- Adds `flag` to the answers of those that were not counted; these have put the scope in doubt.
local function settle_all(scope, answers, flag)
    local names = scope.ended
    if #names == 0 then return end
    local holds = redis.call('ZMSCORE', scope.held, unpack(names))
    redis.call('ZREM', scope.held, unpack(names))
    local lost
    for index, name in ipairs(names) do
        local reserved, arrived = parts(name)
        if holds[index] then
            settle_one(scope, reserved, arrived, scope.costs[index])
        else
            -- Counting it here as well could count it twice: the request log has it, or will have it in a moment.
            lost = math.max(lost or 0, arrived)
            local place = scope.places[index]
            answers[place] = answers[place] + flag
        end
    end
    if lost then doubt_scope(scope, lost) end
end
