-- Raises the spend of a scope to the sum in the request log.
--
-- KEYS: spend, reservations. ARGV: 1 the `since` of the query, 2 the log's sum for requests that arrived before it,
--       3 1 if the sum is final: the log has every request that arrived before, 4 the time now in microseconds.
-- Returns 1 when done, or 0 when `since` has moved or a request that arrived before it is still in flight; then the
-- standing.
release_expired(KEYS[1], KEYS[2], ARGV[4])
if redis.call('EXISTS', KEYS[1]) == 0 then return {0, standing(KEYS[1])} end
-- The sum is a lower bound of the spend, so that admissions can go by it. Another worker may query the log now.
redis.call('HSET', KEYS[1], 'looked', larger(whole(redis.call('HGET', KEYS[1], 'looked')), ARGV[2]))
redis.call('HDEL', KEYS[1], 'asked')
if redis.call('HGET', KEYS[1], 'since') ~= ARGV[1] then return {0, standing(KEYS[1])} end
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    -- An open request from before `since` would be in the log's sum, and be added once more when it is settled.
    local _, arrived = parts(name)
    if arrived < tonumber(ARGV[1]) then return {0, standing(KEYS[1])} end
end
redis.call('HSET', KEYS[1], 'base', larger(whole(redis.call('HGET', KEYS[1], 'base')), ARGV[2]))
if ARGV[3] == '1' then redis.call('HDEL', KEYS[1], 'unsure') end
return {1, standing(KEYS[1])}
