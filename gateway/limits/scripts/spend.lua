-- Shared by the scripts below: what a scope has spent, and who holds how much of it.
--
-- A scope is a hash (base, after, reserved, since, unsure) and a sorted set of reservations by the millisecond at which
-- they lapse. `since` is a time in microseconds: what requests that arrived before it cost stands in `base`, the rest in
-- `after`. While `unsure` is there, `base` may lack requests that are only in the request log, and is raised to the
-- log's sum of what arrived before `since` (raise.lua). Amounts are integers as text: doubles would round from
-- 900,719 dollars on.

local function whole(text) return text and text ~= '' and text or '0' end

-- Of two integers that are not negative, as text.
local function larger(a, b)
    if #a ~= #b then return #a > #b and a or b end
    return a >= b and a or b
end

-- From here on what is counted belongs after `now`: the log has the last word about what came before.
local function doubt(spend, now)
    local after = whole(redis.call('HGET', spend, 'after'))
    if after ~= '0' then
        redis.call('HINCRBY', spend, 'base', after)
    end
    redis.call('HSET', spend, 'after', '0', 'since', now, 'unsure', '1')
end

local function clock_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function unreserve(spend, name)
    local amount = string.match(name, '^[^|]*|(%d+)|')
    if amount ~= '0' then redis.call('HINCRBY', spend, 'reserved', '-' .. amount) end
end

-- Reservations whose worker has not said for long that it still needs them.
local function lapse(spend, held, now_us)
    local late = redis.call('ZRANGEBYSCORE', held, '-inf', clock_ms(), 'LIMIT', 0, 100)
    for _, name in ipairs(late) do
        redis.call('ZREM', held, name)
        unreserve(spend, name)
    end
    if #late > 0 then doubt(spend, now_us) end
end

-- base, after, reserved, unsure
local function standing(spend)
    local found = redis.call('HMGET', spend, 'base', 'after', 'reserved', 'unsure')
    return {whole(found[1]), whole(found[2]), whole(found[3]), found[4] and 1 or 0}
end
