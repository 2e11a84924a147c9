-- Raises the spend of a scope to what the request log knows.
--
-- KEYS: spend, held. ARGV: 1 the `since` that the log was asked about, 2 the log's sum of what arrived before it,
--       3 whether it is final (1): the log has everything that arrived before, 4 now in microseconds.
-- Returns 1 when done, 0 when `since` has moved or a request that arrived before it is still under way, and the standing.
lapse(KEYS[1], KEYS[2], ARGV[4])
if redis.call('EXISTS', KEYS[1]) == 0 then return {0, standing(KEYS[1])} end
-- All of it has been spent, whatever else has: enough for admissions to go by. Another worker may ask now.
redis.call('HSET', KEYS[1], 'looked', larger(whole(redis.call('HGET', KEYS[1], 'looked')), ARGV[2]))
redis.call('HDEL', KEYS[1], 'asked')
if redis.call('HGET', KEYS[1], 'since') ~= ARGV[1] then return {0, standing(KEYS[1])} end
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    -- It would be in the log's sum and be added once more when it is settled.
    local _, arrived = parts(name)
    if arrived < tonumber(ARGV[1]) then return {0, standing(KEYS[1])} end
end
redis.call('HSET', KEYS[1], 'base', larger(whole(redis.call('HGET', KEYS[1], 'base')), ARGV[2]))
if ARGV[3] == '1' then redis.call('HDEL', KEYS[1], 'unsure') end
return {1, standing(KEYS[1])}
