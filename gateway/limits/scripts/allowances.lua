-- Allowances: what a worker may admit of a subject without asking. What is leased counts as used: requests and tokens in
-- the minute, a slot for each request among the places, and one reservation `<id>|<cost>|<since>` in each budget, where no
-- request of an earlier arrival than `since` is taken from it. With each command that a worker sends it says what it took,
-- and the old reservation gives way to those of the requests that are still open, and to a new one of what is left.

-- An allowance is granted at most the SHARE-th part of what a limit has left.
local SHARE = 32

local function slots(allowance, first, count)
    local names = {}
    for slot = first, first + count - 1 do names[#names + 1] = allowance.id .. '#' .. slot end
    return names
end

-- Frees slots; returns whether all of them were held.
local function free_slots(place, names)
    return #names == 0 or redis.call('ZREM', place.key, unpack(names)) == #names
end

local function close_in_places(allowance)
    local kept = allowance.first + allowance.taken
    for index, place in ipairs(allowance.subject.places) do
        allowance.has_slots[index] = free_slots(place, slots(allowance, allowance.first, allowance.taken))
        free_slots(place, slots(allowance, kept + allowance.kept, allowance.back))
    end
end

local function close_in_scope(scope, allowance)
    if allowance.name ~= '' then
        if redis.call('ZREM', scope.reservations, allowance.name) == 0 then
            allowance.is_lost = true
            return
        end
        local reserved = parts(allowance.name)
        if reserved ~= '0' then add(scope, 'reserved', '-' .. reserved) end
    end
    scope.holds[allowance.number] = true
end

-- Takes back what the worker does not want any more, and ends the allowance's reservations.
local function close_allowance(allowance)
    local subject = allowance.subject
    for _, counter in ipairs(subject.counters) do
        return_to_minute(counter, allowance.back, allowance.back_tokens)
    end
    close_in_places(allowance)
    for _, scope in ipairs(subject.scopes) do
        try(scope, close_in_scope, allowance)
        allowance.is_lost = allowance.is_lost or scope.error
    end
    if allowance.is_lost then
        local kept = slots(allowance, allowance.first + allowance.taken, allowance.kept)
        for _, place in ipairs(subject.places) do free_slots(place, kept) end
        return
    end
    for _, scope in ipairs(subject.scopes) do try(scope, add, 'reserved', text_of(allowance.kept_cost)) end
end

-- Makes the reservations of requests that are still open.
local function reserve_taken()
    local of_allowance, names = unpack(TAKEN)
    for row, name in ipairs(names) do
        local allowance, cost = allowances[of_allowance[row]], parts(name)
        for _, scope in ipairs(allowance.subject.scopes) do
            if scope.holds[allowance.number] then try(scope, reserve, name, cost) end
        end
        for index, place in ipairs(allowance.subject.places) do
            if allowance.has_slots[index] then place.made[#place.made + 1] = name end
        end
    end
end

-- Returns how many requests the allowance may have more.
local function share_of(allowance)
    local subject, count = allowance.subject, allowance.wanted
    local function bound(room, each)
        if each > 0 then count = math.min(count, math.floor(room / SHARE / each)) end
    end
    for _, counter in ipairs(subject.counters) do
        if counter.requests_limit then bound(counter.requests_limit - counter.requests, 1) end
        if counter.tokens_limit then bound(counter.tokens_limit - counter.tokens, allowance.tokens) end
    end
    for _, place in ipairs(subject.places) do
        has_place(place)
        bound(place.limit - place.open, 1)
    end
    for _, scope in ipairs(subject.scopes) do
        if scope.refuses then
            if is_unknown(scope) then return 0 end
            bound(scope.budget - spent_of(scope) - scope.reserved, allowance.cost)
        end
    end
    if is_near(subject) then return 0 end
    return math.max(count, 0)
end

local function grant(allowance)
    local subject = allowance.subject
    if allowance.wanted > 0 and not error_of(subject) then allowance.granted = share_of(allowance) end
    local count = allowance.granted
    local cost = count * allowance.cost
    if count > 0 then
        for _, counter in ipairs(subject.counters) do count_in_minute(counter, count, count * allowance.tokens) end
        local first = allowance.first + allowance.taken + allowance.kept
        for _, place in ipairs(subject.places) do
            for _, name in ipairs(slots(allowance, first, count)) do take_place(place, name) end
        end
    end
    if allowance.kept + count == 0 then return end
    local name = table.concat({allowance.id, text_of(allowance.kept_cost + cost), allowance.since}, '|')
    for _, scope in ipairs(subject.scopes) do
        try(scope, add, 'reserved', text_of(cost))
        scope.made[#scope.made + 1] = name
    end
end

-- Notes what is counted in the minute and not used yet: requests, tokens and the keys of the counters.
local function note_leased(allowance)
    local requests = allowance.is_lost and 0 or allowance.kept + allowance.granted
    if requests == 0 or #allowance.subject.counters == 0 then return redis.call('HDEL', LEASED, allowance.id) end
    local words = {text_of(requests), text_of(requests * allowance.tokens)}
    for _, counter in ipairs(allowance.subject.counters) do words[#words + 1] = counter.requests_key end
    redis.call('HSET', LEASED, allowance.id, table.concat(words, ' '))
    redis.call('EXPIRE', LEASED, 120)
end

-- Returns for each allowance the requests that it was granted, or -1 if Redis did not know it any more, and then requests and
-- tokens of each counter of its subject.
local function grant_all()
    local answers = {}
    for _, allowance in ipairs(allowances) do
        if not allowance.is_lost then grant(allowance) end
        note_leased(allowance)
        -- Whether its subject is near a limit is asked for as well.
        allowance.subject.is_admitting = true
        for _, place in ipairs(allowance.subject.places) do has_place(place) end
        answers[#answers + 1] = allowance.is_lost and -1 or allowance.granted
        for _, counter in ipairs(allowance.subject.counters) do
            answers[#answers + 1] = counter.requests
            answers[#answers + 1] = counter.tokens
        end
    end
    return answers
end
