-- Admits requests within all limits of their project, or refuses them and counts nothing.

-- The microseconds after which the request log is queried again for a scope whose spend is certain.
local RECHECK = 3600000000

-- Prepares a scope for the first admission of a batch: puts it in doubt if Redis may not know all of its spend, and
-- releases the reservations that no worker renews.
local function freshen(scope)
    scope.fresh = true
    local unknown = not scope.since
        -- Redis was restarted or replaced, so it may have lost the latest writes.
        or scope.run ~= RUN
        -- The limits were changed since: before that the spend may not have been counted.
        or tonumber(scope.set) < tonumber(SET_AT)
    if unknown then
        redis.call('HSET', scope.spend, 'run', RUN, 'set', larger(scope.set, SET_AT))
        redis.call('HDEL', scope.spend, 'looked')
        doubt_scope(scope)
    elseif not scope.unsure and NOW - scope.arrived_before > RECHECK then
        doubt_scope(scope)
    end
    local names = expired(scope.reservations)
    if #names > 0 then
        write(scope)
        release(scope.spend, scope.reservations, names, NOW)
        read(scope)
    end
end

-- Returns true if the request log has not been queried for the scope yet and the admissions are to wait for it.
local function is_unknown(scope)
    if not scope.fresh then freshen(scope) end
    return WAITS and not scope.looked
end

local function is_full(scope, cost)
    if not scope.fresh then freshen(scope) end
    local spent = math.max(scope.base + scope.after, scope.known, tonumber(scope.looked or '0'))
    return spent + scope.reserved + tonumber(cost) > scope.budget
end

local function reserve(scope, name, cost)
    if cost ~= '0' then add(scope, 'reserved', cost) end
    scope.made[#scope.made + 1] = name
end

local function write_reservations(scope)
    if #scope.made == 0 then return end
    local ends, words = text_of(clock_ms() + LEASE), {}
    for _, name in ipairs(scope.made) do
        words[#words + 1] = ends
        words[#words + 1] = name
    end
    redis.call('ZADD', scope.reservations, unpack(words))
    redis.call('EXPIRE', scope.reservations, scope.ttl)
end

-- Returns the name of the limit that refuses, 'unknown' or '', and the requests and tokens of the minute, this request
-- included.
local function admit(session, name, tokens)
    if minute.requests + 1 > (REQUESTS_LIMIT or math.huge) then return 'requests', minute.requests, false end
    if minute.tokens + tokens > (TOKENS_LIMIT or math.huge) then return 'tokens', minute.requests, minute.tokens end

    local cost = parts(name)
    if month and HARD_STOP and is_unknown(month) or session and is_unknown(session) then
        return 'unknown', minute.requests, minute.tokens
    end
    if month and is_full(month, cost) and HARD_STOP then return 'month', minute.requests, minute.tokens end
    if session and is_full(session, cost) then return 'session', minute.requests, minute.tokens end

    if month then reserve(month, name, cost) end
    if session then reserve(session, name, cost) end
    return '', count_in_minute(tokens)
end
