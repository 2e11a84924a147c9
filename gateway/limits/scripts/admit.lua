-- Admits requests within all limits of their project, or refuses them and counts nothing.

-- Microseconds after which the request log is asked again about a scope of which nothing is in doubt.
local RECHECK = 3600000000

-- Before the first admission of a batch: puts in doubt what may not be known, and lets go what nobody renews.
local function freshen(scope)
    scope.fresh = true
    local unknown = not scope.since
        -- Redis was started again, or another took its place: it may have forgotten what came last.
        or scope.run ~= RUN
        -- The budget may not have been counted before.
        or tonumber(scope.set) < tonumber(SET_AT)
    if unknown then
        redis.call('HSET', scope.spend, 'run', RUN, 'set', larger(scope.set, SET_AT))
        redis.call('HDEL', scope.spend, 'looked')
        doubt_scope(scope)
    elseif not scope.unsure and NOW - scope.arrived_before > RECHECK then
        doubt_scope(scope)
    end
    local names = late(scope.held)
    if #names > 0 then
        write(scope)
        let_go(scope.spend, scope.held, names, NOW)
        read(scope)
    end
end

-- The request log has not been asked yet, and whoever asks here would rather wait for it than guess.
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
    redis.call('ZADD', scope.held, unpack(words))
    redis.call('EXPIRE', scope.held, scope.ttl)
end

-- Returns the name of the limit that refuses, 'unknown' or '', and requests and tokens of the minute with this one.
local function admit(session, name, wanted)
    if minute.requests + 1 > (REQUESTS_LIMIT or math.huge) then return 'requests', minute.requests, false end
    if minute.tokens + wanted > (TOKENS_LIMIT or math.huge) then return 'tokens', minute.requests, minute.tokens end

    local cost = parts(name)
    if month and HARD_STOP and is_unknown(month) or session and is_unknown(session) then
        return 'unknown', minute.requests, minute.tokens
    end
    if month and is_full(month, cost) and HARD_STOP then return 'month', minute.requests, minute.tokens end
    if session and is_full(session, cost) then return 'session', minute.requests, minute.tokens end

    if month then reserve(month, name, cost) end
    if session then reserve(session, name, cost) end
    return '', count_in_minute(wanted)
end
