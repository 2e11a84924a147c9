-- Decides whether the request log has to be queried for a scope, and from when.
--
-- KEYS: spend, reservations. ARGV: 1 the time now in microseconds, 2 the milliseconds during which no other worker is
--       to query the log.
-- Returns `since` ('' when the spend is certain or another worker is querying), the standing, and the latest arrival of
-- the requests that are counted after `since`.
release_expired(KEYS[1], KEYS[2], ARGV[1])
local found = redis.call('HMGET', KEYS[1], 'since', 'unsure', 'asked', 'last')
local now = clock_ms()
if not found[2] then return {'', standing(KEYS[1]), '0'} end
if found[3] and now - tonumber(found[3]) < tonumber(ARGV[2]) then return {'', standing(KEYS[1]), '0'} end
redis.call('HSET', KEYS[1], 'asked', now)
return {found[1], standing(KEYS[1]), whole(found[4])}
