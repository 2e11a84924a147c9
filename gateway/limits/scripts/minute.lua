-- The requests and tokens of the minute, read once and written once for a batch.
local minute = {requests = 0, tokens = 0, admitted = 0}

local function read_minute()
    if not (REQUESTS_LIMIT or TOKENS_LIMIT or EXTRA_TOKENS ~= 0) then return end
    local found = redis.call('MGET', REQUESTS, TOKENS)
    minute.requests = REQUESTS_LIMIT and tonumber(found[1]) or 0
    minute.tokens = tonumber(found[2]) or 0
    if found[2] and EXTRA_TOKENS ~= 0 then
        -- The sum may be below 0 if the settled requests were admitted by a Redis that has lost its data since.
        minute.tokens, minute.corrected = math.max(minute.tokens + EXTRA_TOKENS, 0), true
    end
end

local function count_in_minute(tokens)
    minute.admitted = minute.admitted + 1
    if REQUESTS_LIMIT then minute.requests = minute.requests + 1 end
    if TOKENS_LIMIT then minute.tokens = minute.tokens + tokens end
    return minute.requests, minute.tokens
end

local function write_minute()
    local admitted = minute.admitted > 0
    if REQUESTS_LIMIT and admitted then redis.call('SET', REQUESTS, text_of(minute.requests), 'EX', 120) end
    if minute.corrected or TOKENS_LIMIT and admitted then
        redis.call('SET', TOKENS, text_of(minute.tokens), 'EX', 7200)
    end
end
