-- One call of exchange.py, by its name. KEYS[1] begins all names; those that also have the id of the replication are
-- found only by the server that made them, until it is started again.
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
local own = KEYS[1] .. ':' .. replication .. ':'
local answer = KEYS[1] .. ':answer:'
local waiting, groups, inserters = own .. 'waiting', own .. 'groups', own .. 'inserters'
local KEPT = 3600
-- Lua passes some 8,000 arguments.
local MOST = 1000
local time = redis.call('TIME')
-- In milliseconds, as all times here are.
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local calls = {}

local function batch(token)
    return own .. 'batch:' .. token
end

local function group(id)
    return own .. 'group:' .. id
end

local function lives()
    return #redis.call('ZRANGEBYSCORE', inserters, now, '+inf', 'LIMIT', 0, 1) > 0
end

function calls.lives()
    return lives() and now or 0
end

-- An offer that is sent twice counts once, and one that arrives late may have been given up.
function calls.offer(token, rows, latest, heard, former)
    redis.call('DEL', answer .. former)
    if now > tonumber(latest) or not lives() or redis.call('EXISTS', batch(token), answer .. token) > 0 then
        return
    end
    redis.call('SET', batch(token), rows, 'EX', heard)
    redis.call('ZADD', waiting, now, token)
    redis.call('EXPIRE', waiting, KEPT)
end

function calls.ask(token, heard)
    if lives() then
        return redis.call('EXPIRE', batch(token), heard) == 1 and 'waits' or 'lost'
    end
    redis.call('DEL', batch(token))
    return redis.call('ZREM', waiting, token) == 1 and 'withdrawn' or 'lost'
end

-- Returns the members, each with its rows; nothing if one of them is gone.
local function whole(id)
    local found = {id}
    for _, token in ipairs(redis.call('LRANGE', group(id), 0, -1)) do
        local rows = redis.call('GET', batch(token))
        if not rows then
            redis.call('ZREM', groups, id)
            redis.call('DEL', group(id))
            return {}
        end
        found[#found + 1] = token
        found[#found + 1] = rows
    end
    return found
end

local function gathered(id, room)
    local size, members = 0, 0
    while size < room and members < MOST do
        local token = redis.call('ZRANGE', waiting, 0, 0)[1]
        if not token then
            break
        end
        redis.call('ZREM', waiting, token)
        local rows = redis.call('GET', batch(token))
        if rows then
            redis.call('RPUSH', group(id), token)
            size, members = size + #rows, members + 1
        end
    end
    redis.call('EXPIRE', group(id), KEPT)
    return size > 0
end

-- Takes a group whose lease has ended, else what waits.
function calls.take(inserter, id, alive, lease, room)
    redis.call('ZREMRANGEBYSCORE', inserters, '-inf', now)
    redis.call('ZADD', inserters, now + alive, inserter)
    redis.call('EXPIRE', inserters, KEPT)
    local due = redis.call('ZRANGEBYSCORE', groups, '-inf', now, 'LIMIT', 0, 1)[1]
    if not due and not gathered(id, tonumber(room)) then
        return {}
    end
    redis.call('ZADD', groups, now + lease, due or id)
    redis.call('EXPIRE', groups, KEPT)
    return whole(due or id)
end

function calls.may_insert(id, lease)
    local tokens = redis.call('LRANGE', group(id), 0, -1)
    for _, token in ipairs(tokens) do
        if redis.call('EXISTS', batch(token)) == 0 then
            return 0
        end
    end
    if #tokens > 0 then
        redis.call('ZADD', groups, now + lease, id)
    end
    return #tokens
end

function calls.settle(id, said, ...)
    for _, token in ipairs({...}) do
        redis.call('SET', answer .. token, said, 'EX', KEPT)
        redis.call('DEL', batch(token))
    end
    redis.call('ZREM', groups, id)
    redis.call('DEL', group(id))
end

function calls.leave(inserter)
    redis.call('ZREM', inserters, inserter)
end

return calls[ARGV[1]](unpack(ARGV, 2))
