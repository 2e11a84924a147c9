-- Puts what a request cost in the place of what was reserved for it.

-- Returns whether it was counted; if not, it has put the scope in doubt.
local function counts(scope, name, cost)
    if redis.call('ZREM', scope.held, name) == 1 then
        unreserve(scope.spend, name)
        local found = redis.call('HMGET', scope.spend, 'since', 'last')
        local arrived = arrival(name)
        if arrived < tonumber(whole(found[1])) then
            redis.call('HINCRBY', scope.spend, 'base', cost)
        else
            redis.call('HINCRBY', scope.spend, 'after', cost)
            if arrived > tonumber(whole(found[2])) then redis.call('HSET', scope.spend, 'last', text_of(arrived)) end
        end
        return true
    end
    -- Counting it here as well could count it twice: the request log has it, or will have it in a moment.
    doubt(scope.spend, NOW, arrival(name))
    redis.call('EXPIRE', scope.spend, 2592000)
    return false
end

-- `extra`: tokens to add to the minute. Returns 0 when it was counted, else 1 for the month, 2 for the session, or both.
local function settle(session, name, extra, cost)
    if extra ~= '0' and redis.call('EXISTS', TOKENS) == 1 then
        if redis.call('INCRBY', TOKENS, extra) < 0 then
            -- It was admitted by a Redis that has been lost since.
            redis.call('SET', TOKENS, '0', 'KEEPTTL')
        end
    end
    local doubted = 0
    if month and not counts(month, name, cost) then doubted = 1 end
    if session and not counts(session, name, cost) then doubted = doubted + 2 end
    return doubted
end
