-- Settles and admits requests of one project: first the settlements, then the admissions in order, each as if it came
-- alone. Each count is read once and written once.
--
-- KEYS: requests and tokens of the minute, spend and reservations of the month, then spend and reservations of each
--       session.
-- ARGV: 1 limit of requests, 2 limit of tokens, 3 budget of the month, 4 1 if that budget refuses requests, 5 budget of
--       a session, 6 lease in milliseconds, 7 id of this start of Redis, 8 time of the last change of the limits in
--       microseconds; '' stands for a limit that does not exist. 9, as MessagePack:
--       - the time now in microseconds;
--       - the tokens that the settled requests used beyond their reservations, negative if they used less;
--       - the spend of the month and of each session as the worker last knew it;
--       - three lists of the settlements: number of the session (0: none), reservation, cost (as text above the largest
--         integer that a double holds); a request that Redis did not admit has a reservation that is not stored;
--       - three lists of the admissions: number of the session, reservation, tokens;
--       - true if admissions are answered 'unknown', and count nothing, while the request log has not been queried for
--         a budget that they need.
-- Returns three things. For the settlements: nothing when all were counted, else one number each: 0 when it was
-- counted, 1 when the month did not count it, 2 when the session did not, 3 when neither did; or an error. For each
-- admission: the limit that refuses, 'unknown' or '', then requests and tokens of the minute; or an error and two
-- zeros. Then the standing (spend.lua) of the month and of each session, empty where there is none.

-- Runs `work` for a session. An error ends the counting of this session and of no other.
local function try(session, work, ...)
    if session.error then return end
    local done, problem = pcall(work, session, ...)
    if done then return end
    session.error = type(problem) == 'table' and {err = problem.err} or redis.error_reply(tostring(problem))
end

local function add_settlement(scope, place, name, cost)
    local index = #scope.ended + 1
    scope.ended[index], scope.costs[index], scope.places[index] = name, cost, place
end

local function settle()
    local answers, all_counted = {}, true
    local of_session, names, costs = unpack(SETTLEMENTS)
    for place, name in ipairs(names) do
        local session = sessions[of_session[place]]
        answers[place] = 0
        if month then add_settlement(month, place, name, costs[place]) end
        if session then add_settlement(session, place, name, costs[place]) end
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
    local of_session, names, tokens = unpack(ADMISSIONS)
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

-- Writes a scope and returns its standing. Every write comes before the reply: a Redis that is out of memory has then
-- admitted no request.
local function close(scope)
    if scope.error then return {} end
    write(scope)
    write_reservations(scope)
    return standing_of(scope)
end

read_minute()
if month then read(month) end
for _, session in ipairs(sessions) do try(session, read) end
local reply = {settle(), admit_all(), {}}
write_minute()
if month then reply[3] = close(month) end
for index, session in ipairs(sessions) do reply[index + 3] = close(session) end
return reply
