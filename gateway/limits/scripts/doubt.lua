-- Puts a scope in doubt, because a worker admitted requests of it without Redis.
--
-- KEYS: spend. ARGV: the time now in microseconds. Returns the standing.
doubt(KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], 2592000)
return standing(KEYS[1])
