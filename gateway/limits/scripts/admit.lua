-- Admits a request within all limits of its project, or refuses it and counts nothing.
--
-- KEYS: requests of the minute, tokens of the minute, spend and held of the month, spend and held of the session.
-- ARGV: 1 reservation, 2 requests limit, 3 tokens limit, 4 tokens, 5 month's budget, 6 whether it refuses (1),
--       7 session's budget, 8 cost, 9 now in microseconds, 10 lease in milliseconds, 11 and 12 what the worker last knew
--       of the month's and the session's spend, 13 which start of Redis this is, 14 when the limits were set, in
--       microseconds. Limits and budgets that do not exist are ''.
-- Returns the name of the limit that refuses or '', requests and tokens of the minute with this one,
-- and the standing (spend.lua) of the month and of the session with this one.

-- Microseconds after which the request log is asked again about a scope of which nothing is in doubt.
local RECHECK = 3600000000

local requests, tokens = 0, 0
if ARGV[2] ~= '' then
    requests = tonumber(whole(redis.call('GET', KEYS[1])))
    if requests + 1 > tonumber(ARGV[2]) then return {'requests', requests, false, {}, {}} end
end
if ARGV[3] ~= '' then
    tokens = tonumber(whole(redis.call('GET', KEYS[2])))
    if tokens + tonumber(ARGV[4]) > tonumber(ARGV[3]) then return {'tokens', requests, tokens, {}, {}} end
end

local cost = tonumber(ARGV[8])
local function refuses(spend, held, budget, known, ttl_seconds)
    local found = redis.call('HMGET', spend, 'since', 'unsure', 'run', 'set')
    if
        not found[1]
        -- Redis was started again, or another took its place: it may have forgotten what came last.
        or found[3] ~= ARGV[13]
        -- The budget may not have been counted before.
        or tonumber(whole(found[4])) < tonumber(ARGV[14])
        or not found[2] and tonumber(ARGV[9]) - tonumber(found[1]) > RECHECK
    then
        doubt(spend, ARGV[9])
        redis.call('HSET', spend, 'run', ARGV[13], 'set', larger(whole(found[4]), ARGV[14]))
    end
    redis.call('EXPIRE', spend, ttl_seconds)
    lapse(spend, held, ARGV[9])
    if budget == '' then return false end
    local now = standing(spend)
    local spent = math.max(tonumber(now[1]) + tonumber(now[2]), tonumber(known))
    return spent + tonumber(now[3]) + cost > tonumber(budget)
end

local month, session = {}, {}
if ARGV[5] ~= '' then
    local full = refuses(KEYS[3], KEYS[4], ARGV[5], ARGV[11], 3456000)
    if full and ARGV[6] == '1' then return {'month', requests, tokens, standing(KEYS[3]), {}} end
end
if ARGV[7] ~= '' then
    if refuses(KEYS[5], KEYS[6], ARGV[7], ARGV[12], 2592000) then
        return {'session', requests, tokens, {}, standing(KEYS[5])}
    end
end

local function reserve(spend, held, ttl_seconds)
    redis.call('ZADD', held, clock_ms() + tonumber(ARGV[10]), ARGV[1])
    redis.call('EXPIRE', held, ttl_seconds)
    redis.call('HINCRBY', spend, 'reserved', ARGV[8])
    return standing(spend)
end

if ARGV[2] ~= '' then
    requests = redis.call('INCR', KEYS[1])
    redis.call('EXPIRE', KEYS[1], 120)
end
if ARGV[3] ~= '' then
    tokens = redis.call('INCRBY', KEYS[2], ARGV[4])
    redis.call('EXPIRE', KEYS[2], 7200)
end
if ARGV[5] ~= '' then month = reserve(KEYS[3], KEYS[4], 3456000) end
if ARGV[7] ~= '' then session = reserve(KEYS[5], KEYS[6], 2592000) end
return {'', requests, tokens, month, session}
