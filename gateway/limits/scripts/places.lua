-- The places of concurrent requests: a sorted set of the open requests, whose scores are the milliseconds at which they
-- expire unless their worker renews them.

local function free_places(place)
    if #place.ended > 0 then redis.call('ZREM', place.key, unpack(place.ended)) end
end

local function has_place(place)
    if not place.open then
        redis.call('ZREMRANGEBYSCORE', place.key, '-inf', clock_ms())
        -- The requests that were taken from allowances are written at the end.
        place.open = redis.call('ZCARD', place.key) + #place.made
    end
    return place.open < place.limit
end

local function take_place(place, name)
    place.open = place.open + 1
    place.made[#place.made + 1] = name
end

local function write_places(place)
    if #place.made == 0 then return end
    redis.call('ZADD', place.key, unpack(leases(place.made)))
    redis.call('EXPIRE', place.key, 2592000)
end
