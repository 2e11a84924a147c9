-- Puts what a request cost in the place of what was reserved for it.
--
-- KEYS: tokens of the request's minute, spend and held of the month, spend and held of the session.
-- ARGV: 1 reservation ('' when Redis was away at admission), 2 tokens to add to the minute, 3 cost,
--       4 when the request arrived and 5 now, in microseconds, 6 and 7 whether month and session are counted (1).
-- Returns the standing (spend.lua) of the month and of the session.
if ARGV[2] ~= '0' and redis.call('EXISTS', KEYS[1]) == 1 then
    if redis.call('INCRBY', KEYS[1], ARGV[2]) < 0 then
        -- It was admitted by a Redis that has been lost since.
        redis.call('SET', KEYS[1], '0', 'KEEPTTL')
    end
end

local function settle(spend, held)
    if ARGV[1] ~= '' and redis.call('ZREM', held, ARGV[1]) == 1 then
        unreserve(spend, ARGV[1])
        local found = redis.call('HMGET', spend, 'since', 'last')
        if tonumber(ARGV[4]) < tonumber(whole(found[1])) then
            redis.call('HINCRBY', spend, 'base', ARGV[3])
        else
            redis.call('HINCRBY', spend, 'after', ARGV[3])
            if tonumber(ARGV[4]) > tonumber(whole(found[2])) then redis.call('HSET', spend, 'last', ARGV[4]) end
        end
    else
        -- Counting it here as well could count it twice: the request log has it, or will have it in a moment.
        doubt(spend, ARGV[5], ARGV[4])
        redis.call('EXPIRE', spend, 2592000)
    end
    return standing(spend)
end

return {
    ARGV[6] == '1' and settle(KEYS[2], KEYS[3]) or {},
    ARGV[7] == '1' and settle(KEYS[4], KEYS[5]) or {},
}
