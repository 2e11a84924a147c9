-- What to ask the request log about a scope.
--
-- KEYS: spend, held. ARGV: 1 now in microseconds, 2 milliseconds for which nobody else is to ask.
-- Returns `since` ('' when nothing is in doubt or somebody is asking already), the standing, and when the latest of the
-- requests arrived that are counted after `since`.
lapse(KEYS[1], KEYS[2], ARGV[1])
local found = redis.call('HMGET', KEYS[1], 'since', 'unsure', 'asked', 'last')
local now = clock_ms()
if not found[2] then return {'', standing(KEYS[1]), '0'} end
if found[3] and now - tonumber(found[3]) < tonumber(ARGV[2]) then return {'', standing(KEYS[1]), '0'} end
redis.call('HSET', KEYS[1], 'asked', now)
return {found[1], standing(KEYS[1]), whole(found[4])}
