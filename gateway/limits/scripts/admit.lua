-- Admits requests within all limits that apply to them, or refuses them and counts nothing.

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
        or tonumber(scope.set) < tonumber(scope.set_at)
    if unknown then
        redis.call('HSET', scope.spend, 'run', RUN, 'set', larger(scope.set, scope.set_at))
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

local function spent_of(scope) return math.max(scope.base + scope.after, scope.known, tonumber(scope.looked or '0')) end

local function is_full(scope, cost)
    if not scope.fresh then freshen(scope) end
    return spent_of(scope) + scope.reserved + tonumber(cost) > scope.budget
end

local function reserve(scope, name, cost)
    if cost ~= '0' then add(scope, 'reserved', cost) end
    scope.made[#scope.made + 1] = name
end

local function write_reservations(scope)
    if #scope.made == 0 then return end
    redis.call('ZADD', scope.reservations, unpack(leases(scope.made)))
    redis.call('EXPIRE', scope.reservations, scope.ttl)
end

-- Returns the name of the rate or the concurrency limit that refuses, or nil.
local function refused_by_rate(subject, tokens)
    for _, counter in ipairs(subject.counters) do
        if counter.requests + 1 > (counter.requests_limit or math.huge) then return counter.name .. 'requests' end
        if counter.tokens + tokens > (counter.tokens_limit or math.huge) then return counter.name .. 'tokens' end
    end
    for _, place in ipairs(subject.places) do
        if not has_place(place) then return place.name end
    end
end

-- Returns the name of the budget that refuses, with what is neither spent nor reserved behind a bar; 'unknown', or nil.
local function refused_by_budget(subject, cost)
    for _, scope in ipairs(subject.scopes) do
        if scope.refuses and is_unknown(scope) then return 'unknown' end
    end
    for _, scope in ipairs(subject.scopes) do
        if is_full(scope, cost) and scope.refuses then
            return scope.name .. '|' .. text_of(math.max(scope.budget - spent_of(scope) - scope.reserved, 0))
        end
    end
end

-- Returns the error of the first scope of the subject that cannot be counted.
local function error_of(subject)
    for _, scope in ipairs(subject.scopes) do
        if not scope.fresh then try(scope, freshen) end
        if scope.error then return scope.error end
    end
end

-- Returns the name of the limit that refuses, with what is left of a budget; 'unknown' or ''.
local function admit(subject, name, tokens)
    local cost = parts(name)
    local refused = refused_by_rate(subject, tokens) or refused_by_budget(subject, cost)
    if refused then return refused end
    for _, counter in ipairs(subject.counters) do count_in_minute(counter, 1, tokens) end
    for _, place in ipairs(subject.places) do take_place(place, name) end
    for _, scope in ipairs(subject.scopes) do reserve(scope, name, cost) end
    return ''
end
