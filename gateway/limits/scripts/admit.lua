-- Admits a request within all limits of its project, or refuses it and counts nothing.

-- Microseconds after which the request log is asked again about a scope of which nothing is in doubt.
local RECHECK = 3600000000

-- What the minute's counter holds, or false where it is not limited.
local function in_minute(limit, key)
    return limit ~= '' and tonumber(whole(redis.call('GET', key)))
end

-- Before the first admission of a batch: puts in doubt what may not be known, and lets go what nobody renews.
local function freshen(scope)
    local found = redis.call('HMGET', scope.spend, 'unsure', 'since', 'run', 'set')
    local stale = not found[2]
        -- Redis was started again, or another took its place: it may have forgotten what came last.
        or found[3] ~= RUN
        -- The budget may not have been counted before.
        or tonumber(whole(found[4])) < tonumber(SET_AT)
        or not found[1] and tonumber(NOW) - tonumber(found[2]) > RECHECK
    if stale then
        doubt(scope.spend, NOW)
        redis.call('HSET', scope.spend, 'run', RUN, 'set', larger(whole(found[4]), SET_AT))
    end
    redis.call('EXPIRE', scope.spend, scope.ttl)
    lapse(scope.spend, scope.held, NOW)
    scope.fresh = true
end

local function is_full(scope, cost)
    if not scope.fresh then freshen(scope) end
    local found = redis.call('HMGET', scope.spend, 'base', 'after', 'reserved')
    local spent = math.max(tonumber(whole(found[1])) + tonumber(whole(found[2])), tonumber(scope.known))
    return spent + tonumber(whole(found[3])) + tonumber(cost) > tonumber(scope.budget)
end

local function reserve(scope, name, cost)
    redis.call('ZADD', scope.held, clock_ms() + tonumber(LEASE), name)
    if not scope.kept then
        redis.call('EXPIRE', scope.held, scope.ttl)
        scope.kept = true
    end
    if cost ~= '0' then redis.call('HINCRBY', scope.spend, 'reserved', cost) end
end

-- Returns the name of the limit that refuses or '', and requests and tokens of the minute with this one.
local function admit(session, name, wanted)
    local requests = in_minute(REQUESTS_LIMIT, REQUESTS)
    if requests and requests + 1 > tonumber(REQUESTS_LIMIT) then return {'requests', requests, false} end
    local tokens = in_minute(TOKENS_LIMIT, TOKENS)
    if tokens and tokens + tonumber(wanted) > tonumber(TOKENS_LIMIT) then return {'tokens', requests or 0, tokens} end

    local cost = amount(name)
    if month and is_full(month, cost) and HARD_STOP == '1' then return {'month', requests or 0, tokens or 0} end
    if session and is_full(session, cost) then return {'session', requests or 0, tokens or 0} end

    if requests then
        requests = redis.call('INCR', REQUESTS)
        if requests == 1 then redis.call('EXPIRE', REQUESTS, 120) end
    end
    if tokens then
        local before = tokens
        tokens = redis.call('INCRBY', TOKENS, wanted)
        -- Also where it stood at 0: that may be a key that has just been made.
        if before == 0 then redis.call('EXPIRE', TOKENS, 7200) end
    end
    if month then reserve(month, name, cost) end
    if session then reserve(session, name, cost) end
    return {'', requests or 0, tokens or 0}
end
