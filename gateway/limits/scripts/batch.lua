-- Admits and settles requests of one project in the order in which they ask, each as if it were alone.
--
-- KEYS: requests of the minute, tokens of the minute, spend and held of the month, then spend and held of each session.
-- ARGV: 1 requests limit, 2 tokens limit, 3 month's budget, 4 whether it refuses (1), 5 budget of a session, 6 lease in
--       milliseconds, 7 which start of Redis this is, 8 when the limits were set and 9 now, in microseconds, 10 what the
--       worker last knew of the month's spend, then the same of each session; then of each request which session is its
--       (0: none), its reservation, tokens, and what it cost, '' where it asks to be admitted. Limits and budgets that
--       do not exist are ''. The reservation of a request that Redis did not admit is one that nobody holds.
-- Returns what `admit` or `settle` answers to each request, or its error; then the standing (spend.lua) of the month and
-- of each session, empty where there is none.

-- One that fails must not take the others with it: what they have done stands.
local function attempt(work, ...)
    local done, answer = pcall(work, ...)
    if done then return answer end
    return type(answer) == 'table' and {err = answer.err} or redis.error_reply(tostring(answer))
end

local function stands(scope)
    local done, found = pcall(standing, scope.spend)
    return done and found or {}
end

local answers = {}
for at = 11 + #sessions, #ARGV, 4 do
    local cost = ARGV[at + 3]
    answers[#answers + 1] =
        attempt(cost == '' and admit or settle, sessions[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2], cost)
end
local told = {answers, month and stands(month) or {}}
for index, session in ipairs(sessions) do told[index + 2] = stands(session) end
return told
