-- Shared by all scripts: the spend of a scope, and the reservations of its requests.
--
-- A scope is a hash (base, after, reserved, since, last, unsure, run, set, looked, asked) and a sorted set of
-- reservations, whose scores are the milliseconds at which they expire. `since` is a time in microseconds: the cost of
-- requests that arrived before it is in `base`, that of later ones in `after`, and `last` is the latest arrival among
-- these. While `unsure` exists, `base` may lack requests that are only in the request log; it is then raised to the
-- log's sum for requests that arrived before `since` (raise.lua). `base` never holds a request that arrived later: the
-- log's sum and `base` could then each lack a request of the other, and the larger of the two would be too low.
-- `looked` is the log's sum of the latest query; it does not exist while an unknown scope waits for its first query.
-- `asked` is the time of a query that has not been answered. Amounts are integers as text, because doubles would round
-- them from 900,719 dollars on; times fit into doubles.

local function whole(text) return text and text ~= '' and text or '0' end

-- Returns the larger of two non-negative integers that are given as text.
local function larger(a, b)
    if #a ~= #b then return #a > #b and a or b end
    return a >= b and a or b
end

-- Returns the number as text without decimal places or exponent.
local function text_of(number) return string.format('%.0f', number) end

-- Puts a scope in doubt: requests that arrived before `now` are counted by the log, later ones in `after`. `lost` is
-- the latest arrival of the requests that are not counted here, which may lie in the future by a worker's clock. Each
-- doubt has a `since` of its own, so that the log's sum for an earlier doubt does not end it.
local function doubt(spend, now, lost)
    local found = redis.call('HMGET', spend, 'after', 'since', 'last')
    local after = whole(found[1])
    local since = math.max(
        tonumber(now), tonumber(lost or '0') + 1, tonumber(whole(found[2])) + 1, tonumber(whole(found[3])) + 1
    )
    if after ~= '0' then
        redis.call('HINCRBY', spend, 'base', after)
    end
    redis.call('HSET', spend, 'after', '0', 'since', text_of(since), 'unsure', '1')
end

-- Returns the time in milliseconds, which stays the same during one run of a script.
local clock
local function clock_ms()
    if not clock then
        local time = redis.call('TIME')
        clock = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    return clock
end

-- Returns the amount (as text) and the arrival of a reservation `<request>|<amount>|<arrival>`.
local function parts(name)
    local amount, arrived = string.match(name, '^[^|]*|(%d+)|(%d+)$')
    return amount, tonumber(arrived)
end

-- Returns up to 100 reservations that have expired, because their worker has not renewed them.
local function expired(reservations)
    return redis.call('ZRANGEBYSCORE', reservations, '-inf', clock_ms(), 'LIMIT', 0, 100)
end

local function release(spend, reservations, names, now_us)
    local latest = 0
    for _, name in ipairs(names) do
        local reserved, arrived = parts(name)
        redis.call('ZREM', reservations, name)
        if reserved ~= '0' then redis.call('HINCRBY', spend, 'reserved', '-' .. reserved) end
        latest = math.max(latest, arrived)
    end
    if #names > 0 then doubt(spend, now_us, latest) end
end

local function release_expired(spend, reservations, now_us) release(spend, reservations, expired(reservations), now_us) end

-- Returns the standing of a scope, as workers receive it: base, after, unsure, since.
local function standing(spend)
    local found = redis.call('HMGET', spend, 'base', 'after', 'unsure', 'since')
    return {whole(found[1]), whole(found[2]), found[3] and 1 or 0, whole(found[4])}
end
