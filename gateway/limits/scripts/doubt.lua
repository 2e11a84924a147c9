-- Puts a scope in doubt: requests of it were admitted where it is not counted.
--
-- KEYS: spend. ARGV: now in microseconds. Returns the standing.
doubt(KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], 2592000)
return standing(KEYS[1])
