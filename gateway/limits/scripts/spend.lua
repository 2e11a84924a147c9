-- Shared by the scripts below: what a scope has spent, and who holds how much of it.
--
-- A scope is a hash (base, after, reserved, since, last, unsure, run, set, looked) and a sorted set of reservations by the
-- millisecond at which they lapse. `since` is a time in microseconds: what requests that arrived before it cost stands
-- in `base`, the rest in `after`, the latest of which arrived at `last`. While `unsure` is there, `base` may lack
-- requests that are only in the request log, and is raised to the log's sum of what arrived before `since` (raise.lua).
-- `looked` is what the log said when it was last asked; it is not there while a scope that nobody knew waits for that.
-- `base` never holds a request that arrived later: the larger of the two would then lack one of the other.
-- Amounts are integers as text: doubles would round from 900,719 dollars on; times fit into them.

local function whole(text) return text and text ~= '' and text or '0' end

-- Of two integers that are not negative, as text.
local function larger(a, b)
    if #a ~= #b then return #a > #b and a or b end
    return a >= b and a or b
end

-- Without decimal places or exponent.
local function text_of(number) return string.format('%.0f', number) end

-- From here on what is counted belongs after `now`: the log has the last word about what came before. `lost`: when the
-- latest of the requests arrived that are not counted here; a worker's clock may be ahead, or have been. Each doubt has a
-- `since` of its own, so that what the log said about an earlier one does not end it.
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

-- The same for all of a script.
local clock
local function clock_ms()
    if not clock then
        local time = redis.call('TIME')
        clock = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    return clock
end

-- What a reservation `<request>|<amount>|<arrival>` says: the amount as text.
local function parts(name)
    local amount, arrived = string.match(name, '^[^|]*|(%d+)|(%d+)$')
    return amount, tonumber(arrived)
end

-- Reservations whose worker has not said for long that it still needs them.
local function late(held)
    return redis.call('ZRANGEBYSCORE', held, '-inf', clock_ms(), 'LIMIT', 0, 100)
end

local function let_go(spend, held, names, now_us)
    local latest = 0
    for _, name in ipairs(names) do
        local reserved, arrived = parts(name)
        redis.call('ZREM', held, name)
        if reserved ~= '0' then redis.call('HINCRBY', spend, 'reserved', '-' .. reserved) end
        latest = math.max(latest, arrived)
    end
    if #names > 0 then doubt(spend, now_us, latest) end
end

local function lapse(spend, held, now_us) let_go(spend, held, late(held), now_us) end

-- What a worker is told of a scope: base, after, unsure, since.
local function standing(spend)
    local found = redis.call('HMGET', spend, 'base', 'after', 'unsure', 'since')
    return {whole(found[1]), whole(found[2]), found[3] and 1 or 0, whole(found[4])}
end
