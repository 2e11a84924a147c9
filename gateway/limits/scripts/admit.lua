-- Admits a request within all limits of its project, or refuses it and counts nothing.
--
-- KEYS: requests of the minute, tokens of the minute, spend and held of the month, spend and held of the session.
-- ARGV: 1 requests limit, 2 tokens limit, 3 month's budget, 4 whether it refuses (1), 5 session's budget, 6 lease in
--       milliseconds, 7 which start of Redis this is, 8 when the limits were set, in microseconds, 9 reservation,
--       10 tokens, 11 cost, 12 now in microseconds, 13 and 14 what the worker last knew of the month's and the session's
--       spend. Limits and budgets that do not exist are ''.
-- Returns the name of the limit that refuses or '', requests and tokens of the minute with this one,
-- and the standing (spend.lua) of the month and of the session.

-- Microseconds after which the request log is asked again about a scope of which nothing is in doubt.
local RECHECK = 3600000000

local requests, tokens = 0, 0
if ARGV[1] ~= '' then
    requests = tonumber(whole(redis.call('GET', KEYS[1])))
    if requests + 1 > tonumber(ARGV[1]) then return {'requests', requests, false, {}, {}} end
end
if ARGV[2] ~= '' then
    tokens = tonumber(whole(redis.call('GET', KEYS[2])))
    if tokens + tonumber(ARGV[10]) > tonumber(ARGV[2]) then return {'tokens', requests, tokens, {}, {}} end
end

local now, cost = tonumber(ARGV[12]), tonumber(ARGV[11])
local function refuses(spend, held, budget, known, ttl_seconds)
    local found = look(spend)
    local stale = not found[4]
        -- Redis was started again, or another took its place: it may have forgotten what came last.
        or found[6] ~= ARGV[7]
        -- The budget may not have been counted before.
        or tonumber(whole(found[7])) < tonumber(ARGV[8])
        or not found[3] and now - tonumber(found[4]) > RECHECK
    if stale then
        doubt(spend, ARGV[12])
        redis.call('HSET', spend, 'run', ARGV[7], 'set', larger(whole(found[7]), ARGV[8]))
    end
    redis.call('EXPIRE', spend, ttl_seconds)
    if lapse(spend, held, ARGV[12]) or stale then found = look(spend) end
    local spent = math.max(tonumber(whole(found[1])) + tonumber(whole(found[2])), tonumber(known))
    return spent + tonumber(whole(found[5])) + cost > tonumber(budget), told(found)
end

local full
local month, session = {}, {}
if ARGV[3] ~= '' then
    full, month = refuses(KEYS[3], KEYS[4], ARGV[3], ARGV[13], 3456000)
    if full and ARGV[4] == '1' then return {'month', requests, tokens, month, {}} end
end
if ARGV[5] ~= '' then
    full, session = refuses(KEYS[5], KEYS[6], ARGV[5], ARGV[14], 2592000)
    if full then return {'session', requests, tokens, {}, session} end
end

local function reserve(spend, held, ttl_seconds)
    redis.call('ZADD', held, clock_ms() + tonumber(ARGV[6]), ARGV[9])
    redis.call('EXPIRE', held, ttl_seconds)
    if ARGV[11] ~= '0' then redis.call('HINCRBY', spend, 'reserved', ARGV[11]) end
end

if ARGV[1] ~= '' then
    requests = redis.call('INCR', KEYS[1])
    if requests == 1 then redis.call('EXPIRE', KEYS[1], 120) end
end
if ARGV[2] ~= '' then
    local before = tokens
    tokens = redis.call('INCRBY', KEYS[2], ARGV[10])
    -- Also where it stood at 0: that may be a key that has just been made.
    if before == 0 then redis.call('EXPIRE', KEYS[2], 7200) end
end
if ARGV[3] ~= '' then reserve(KEYS[3], KEYS[4], 3456000) end
if ARGV[5] ~= '' then reserve(KEYS[5], KEYS[6], 2592000) end
return {'', requests, tokens, month, session}
