-- Settles and admits requests of one project: settlements first, then admissions in the order in which they ask, each as
-- if it were alone. What is counted is read once and written once for all.
--
-- KEYS: requests of the minute, tokens of the minute, spend and held of the month, then spend and held of each session.
-- ARGV: 1 requests limit, 2 tokens limit, 3 month's budget, 4 whether it refuses (1), 5 budget of a session, 6 lease in
--       milliseconds, 7 which start of Redis this is, 8 when the limits were set, in microseconds; those that do not exist
--       are ''. 9 as MessagePack: now in microseconds; tokens that the settled requests used beyond what they had
--       reserved, or less; what the worker last knew of the month's spend, then the same of each session; of all
--       settlements three lists, which session is theirs (0: none), reservations, and what they cost (as text beyond what
--       a double holds); of all admissions the same with tokens in the place of costs; whether admissions are to be
--       'unknown', and count nothing, while the log has not been asked about a budget that they need. The reservation of a request that
--       Redis did not admit is one that nobody holds.
-- Returns what is answered to the settlements: nothing when all were counted, else of each 0 when it was, or 1 for the
-- month, 2 for the session, or both where it was not, or an error; of each admission the name of the limit that refuses,
-- 'unknown' or '', and requests and tokens of the minute with this one, or an error and two that say nothing; then the standing
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

local function settle()
    local answers, all_counted = {}, true
    local of_session, names, costs = unpack(SETTLED)
    for place, name in ipairs(names) do
        local session = sessions[of_session[place]]
        answers[place] = 0
        if month then take(month, place, name, costs[place]) end
        if session then take(session, place, name, costs[place]) end
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
    local of_session, names, tokens = unpack(ASKED)
    for place, name in ipairs(names) do
        local session, index = sessions[of_session[place]], #answers + 1
        if session and not session.fresh then try(session, freshen) end
        if session and session.error then
            answers[index], answers[index + 1], answers[index + 2] = session.error, 0, 0
        else
            answers[index], answers[index + 1], answers[index + 2] = admit(session, name, tokens[place])
        end
    end
    return answers
end

-- Nothing is told before all is written: a Redis without memory for it has admitted nobody.
local function close(scope)
    if scope.error then return {} end
    write(scope)
    write_reservations(scope)
    return stands(scope)
end

read_minute()
if month then read(month) end
for _, session in ipairs(sessions) do try(session, read) end
local told = {settle(), admit_all(), {}}
write_minute()
if month then told[3] = close(month) end
for index, session in ipairs(sessions) do told[index + 3] = close(session) end
return told
