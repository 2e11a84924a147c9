-- The requests and tokens of a minute, of the project, a team, a key and a user: read once and written once for a batch.

local function read_minutes()
    if #counters == 0 then return end
    local keys = {}
    for index, counter in ipairs(counters) do
        keys[2 * index - 1], keys[2 * index] = counter.requests_key, counter.tokens_key
    end
    local found = redis.call('MGET', unpack(keys))
    for index, counter in ipairs(counters) do
        local requests, tokens = found[2 * index - 1], found[2 * index]
        counter.requests = counter.requests_limit and tonumber(requests) or 0
        counter.tokens = tonumber(tokens) or 0
        counter.has_tokens = tokens
    end
end

-- Corrects the tokens of a counter by what the settled requests used beyond their reservations.
local function correct_tokens(counter)
    if not counter.has_tokens or counter.extra == 0 then return end
    -- The sum may be below 0 if the settled requests were admitted by a Redis that has lost its data since.
    counter.tokens, counter.corrected = math.max(counter.tokens + counter.extra, 0), true
end

local function count_in_minute(counter, requests, tokens)
    counter.admitted = true
    if counter.requests_limit then counter.requests = counter.requests + requests end
    if counter.tokens_limit then counter.tokens = counter.tokens + tokens end
end

-- Takes back what a worker leased and did not use.
local function return_to_minute(counter, requests, tokens)
    if counter.requests_limit and requests > 0 then
        counter.requests, counter.returned = math.max(counter.requests - requests, 0), true
    end
    if counter.tokens_limit then counter.extra = counter.extra - tokens end
end

local function write_minute(counter)
    if counter.requests_limit and (counter.admitted or counter.returned) then
        redis.call('SET', counter.requests_key, text_of(counter.requests), 'EX', 120)
    end
    if counter.corrected or counter.tokens_limit and counter.admitted then
        redis.call('SET', counter.tokens_key, text_of(counter.tokens), 'EX', 7200)
    end
end
