-- Puts what a request cost in the place of what was reserved for it.
--
-- KEYS: tokens of the request's minute, spend and held of the month, spend and held of the session.
-- ARGV: 1 and 2 whether month and session are counted (1), 3 reservation ('' when Redis was away at admission), 4 tokens
--       to add to the minute, 5 cost, 6 when the request arrived and 7 now, in microseconds.
-- Returns the standing (spend.lua) of the month and of the session, empty but for one that this has put in doubt; 0 when
-- both are empty.
if ARGV[4] ~= '0' and redis.call('EXISTS', KEYS[1]) == 1 then
    if redis.call('INCRBY', KEYS[1], ARGV[4]) < 0 then
        -- It was admitted by a Redis that has been lost since.
        redis.call('SET', KEYS[1], '0', 'KEEPTTL')
    end
end

local function settle(spend, held)
    if ARGV[3] ~= '' and redis.call('ZREM', held, ARGV[3]) == 1 then
        unreserve(spend, ARGV[3])
        local found = redis.call('HMGET', spend, 'since', 'last')
        if tonumber(ARGV[6]) < tonumber(whole(found[1])) then
            redis.call('HINCRBY', spend, 'base', ARGV[5])
        else
            redis.call('HINCRBY', spend, 'after', ARGV[5])
            if tonumber(ARGV[6]) > tonumber(whole(found[2])) then redis.call('HSET', spend, 'last', ARGV[6]) end
        end
        return nil
    end
    -- Counting it here as well could count it twice: the request log has it, or will have it in a moment.
    doubt(spend, ARGV[7], ARGV[6])
    redis.call('EXPIRE', spend, 2592000)
    return standing(spend)
end

local month = ARGV[1] == '1' and settle(KEYS[2], KEYS[3])
local session = ARGV[2] == '1' and settle(KEYS[4], KEYS[5])
if not month and not session then return 0 end
return {month or {}, session or {}}
