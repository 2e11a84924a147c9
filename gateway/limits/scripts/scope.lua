-- A scope in the memory of the script: it is read once and written once for a batch.

-- Doubles hold integers exactly below this bound; Redis adds larger amounts itself.
local EXACT = 9007199254740992

local function read(scope)
    local found = redis.call('HMGET', scope.spend, 'base', 'after', 'reserved', 'last', 'since', 'unsure', 'run', 'set', 'looked')
    local text = {base = whole(found[1]), after = whole(found[2]), reserved = whole(found[3]), last = whole(found[4])}
    scope.base, scope.after = tonumber(text.base), tonumber(text.after)
    scope.reserved, scope.last = tonumber(text.reserved), tonumber(text.last)
    scope.since, scope.unsure, scope.run, scope.set = found[5], found[6], found[7], whole(found[8])
    scope.looked = found[9]
    scope.arrived_before, scope.text, scope.changes = tonumber(whole(found[5])), text, {}
end

local function write(scope)
    local words = {}
    for field in pairs(scope.changes) do
        local text = text_of(scope[field])
        scope.text[field] = text
        words[#words + 1] = field
        words[#words + 1] = text
    end
    if #words == 0 then return end
    redis.call('HSET', scope.spend, unpack(words))
    scope.changes = {}
end

local function put(scope, field, number)
    scope[field] = number
    scope.changes[field] = true
end

-- Adds `amount`, a number or its text, to a field of the scope.
local function add(scope, field, amount)
    local before = scope[field]
    local sum = before + tonumber(amount)
    if before < EXACT and sum < EXACT and sum > -EXACT then return put(scope, field, sum) end
    write(scope)
    redis.call('HINCRBY', scope.spend, field, amount)
    read(scope)
end

-- Puts the scope in doubt; `lost` is the parameter of `doubt`.
local function doubt_scope(scope, lost)
    write(scope)
    doubt(scope.spend, NOW, lost)
    redis.call('EXPIRE', scope.spend, scope.ttl)
    read(scope)
end

-- Returns the standing of a scope that has been written, in the form of `standing`.
local function standing_of(scope)
    return {scope.text.base, scope.text.after, scope.unsure and 1 or 0, whole(scope.since)}
end

-- Returns reservations with the end of their lease, in the form of ZADD.
local function leases(names)
    local ends, words = text_of(clock_ms() + LEASE), {}
    for _, name in ipairs(names) do
        words[#words + 1] = ends
        words[#words + 1] = name
    end
    return words
end

-- Runs `work` for a scope. An error ends the counting of this scope and of no other.
local function try(scope, work, ...)
    if scope.error then return end
    local done, problem = pcall(work, scope, ...)
    if done then return end
    scope.error = type(problem) == 'table' and {err = problem.err} or redis.error_reply(tostring(problem))
end
