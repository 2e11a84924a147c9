-- Settles and admits requests of one project: settlements first, then admissions in the order in which they ask, each as
-- if it were alone. What is counted is read once and written once for all.
--
-- KEYS: requests of the minute, tokens of the minute, spend and held of the month, then spend and held of each session.
-- ARGV: 1 requests limit, 2 tokens limit, 3 month's budget, 4 whether it refuses (1), 5 budget of a session, 6 lease in
--       milliseconds, 7 which start of Redis this is, 8 when the limits were set and 9 now, in microseconds, 10 tokens
--       that the settled requests used beyond what they had reserved, or less, 11 how many settlements there are, 12 what
--       the worker last knew of the month's spend, then the same of each session; then of each settlement which session
--       is its (0: none), its reservation and what it cost; then of each admission the session, its reservation and
--       tokens. Limits and budgets that do not exist are ''. The reservation of a request that Redis did not admit is
--       one that nobody holds.
-- Returns what is answered to the settlements: nothing when all were counted, else of each 0 when it was, or 1 for the
-- month, 2 for the session, or both where it was not, or an error; of each admission the name of the limit that refuses
-- or '', and requests and tokens of the minute with this one, or an error and two that say nothing; then the standing
-- (spend.lua) of the month and of each session, empty where there is none.

-- A session that cannot be counted must not take the others with it.
local function try(session, work, ...)
    if session.error then return end
    local done, problem = pcall(work, session, ...)
    if done then return end
    session.error = type(problem) == 'table' and {err = problem.err} or redis.error_reply(tostring(problem))
end

local function take(scope, place, name, cost)
    local index = #scope.ended + 1
    scope.ended[index], scope.costs[index], scope.places[index] = name, cost, place
end

local first = 13 + #sessions
local first_admission = first + 3 * SETTLEMENTS

local function settle()
    local answers, all_counted = {}, true
    for at = first, first_admission - 3, 3 do
        local place, session = #answers + 1, sessions[tonumber(ARGV[at])]
        answers[place] = 0
        if month then take(month, place, ARGV[at + 1], ARGV[at + 2]) end
        if session then take(session, place, ARGV[at + 1], ARGV[at + 2]) end
    end
    if month then settle_all(month, answers, 1) end
    for _, session in ipairs(sessions) do
        try(session, settle_all, answers, 2)
        for _, place in ipairs(session.error and session.places or {}) do answers[place] = session.error end
    end
    for _, answer in ipairs(answers) do all_counted = all_counted and answer == 0 end
    return all_counted and {} or answers
end

local function admit_all()
    local answers = {}
    for at = first_admission, #ARGV, 3 do
        local session, index = sessions[tonumber(ARGV[at])], #answers + 1
        if session and not session.fresh then try(session, freshen) end
        if session and session.error then
            answers[index], answers[index + 1], answers[index + 2] = session.error, 0, 0
        else
            answers[index], answers[index + 1], answers[index + 2] =
                admit(session, ARGV[at + 1], tonumber(ARGV[at + 2]))
        end
    end
    return answers
end

local function close(scope)
    write(scope)
    write_reservations(scope)
end

read_minute()
if month then read(month) end
for _, session in ipairs(sessions) do try(session, read) end
local settled, admitted = settle(), admit_all()
write_minute()
if month then close(month) end
local told = {settled, admitted, month and stands(month) or {}}
for index, session in ipairs(sessions) do
    try(session, close)
    told[index + 3] = session.error and {} or stands(session)
end
return told
