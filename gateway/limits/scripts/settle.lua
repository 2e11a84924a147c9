-- Puts what a request cost in the place of what was reserved for it.
--
-- KEYS: tokens of the request's minute, spend and held of the month, spend and held of the session.
-- ARGV: 1 reservation ('' when Redis was away at admission), 2 tokens to add to the minute, 3 cost,
--       4 when the request arrived and 5 now, in microseconds, 6 and 7 whether month and session are counted (1).
-- Returns base, after, reserved, unsure of the month and of the session.
if ARGV[2] ~= '0' and redis.call('EXISTS', KEYS[1]) == 1 then
    redis.call('INCRBY', KEYS[1], ARGV[2])
end

local function settle(spend, held)
    if ARGV[1] ~= '' and redis.call('ZREM', held, ARGV[1]) == 1 then
        unreserve(spend, ARGV[1])
        local since = whole(redis.call('HGET', spend, 'since'))
        local before = tonumber(ARGV[4]) < tonumber(since)
        redis.call('HINCRBY', spend, before and 'base' or 'after', ARGV[3])
    else
        -- Counting it here as well could count it twice: the request log has it, or will have it in a moment.
        doubt(spend, ARGV[5])
        redis.call('EXPIRE', spend, 2592000)
    end
    return standing(spend)
end

return {
    ARGV[6] == '1' and settle(KEYS[2], KEYS[3]) or {},
    ARGV[7] == '1' and settle(KEYS[4], KEYS[5]) or {},
}
