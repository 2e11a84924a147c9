-- Renews the reservations of requests that are still in flight.
--
-- KEYS: reservations. ARGV: 1 lease in milliseconds, then the reservations.
local ends = clock_ms() + tonumber(ARGV[1])
for index = 2, #ARGV do
    redis.call('ZADD', KEYS[1], 'XX', ends, ARGV[index])
end
return #ARGV - 1
