-- Settles and admits requests of one project: first the settlements, then the admissions in order, each as if it came
-- alone. Each count is read once and written once.
--
-- KEYS: requests and tokens of each counter, the open requests of each concurrency limit, then spend and reservations of
--       each budget, and last, if there are allowances, what is leased of the project's minutes.
-- ARGV: 1 lease in milliseconds, 2 id of this start of Redis. 3, as MessagePack:
--       - the time now in microseconds;
--       - true if admissions are answered 'unknown', and count nothing, while the request log has not been queried for
--         a budget that they need;
--       - the counters of requests and tokens in a minute: the beginning of the refusal's name, and the limits of
--         requests and of tokens, false for a limit that does not exist;
--       - the concurrency limits: the refusal's name and the limit;
--       - the budgets: the refusal's name, the amount, true if it refuses requests, seconds to keep it, time of the last
--         change of the limit in microseconds as text, and the spend as the worker last knew it;
--       - the subjects, each for the requests to which the same limits apply: the numbers of its counters, of those
--         among them that count tokens, of its concurrency limits and of its budgets;
--       - five lists of the settlements: number of the subject, reservation, cost (as text above the largest integer
--         that a double holds), the tokens beyond the reservation, negative if the request used less, and the number of
--         the allowance that the request was taken from since the last command, else 0; a request that Redis did not
--         admit has a reservation that is not stored;
--       - three lists of the admissions: number of the subject, reservation, tokens;
--       - the allowances (allowances.lua): number of the subject, reservation ('' for a new one), id, number of the first
--         slot, requests taken since the last command, requests and cost that the worker goes on taking, requests and
--         tokens that it returns, requests that it wants, with the tokens and the cost of each, and the time in
--         microseconds, as text, before which no request has arrived that is taken from now on;
--       - two lists of the requests that were taken and are open: number of the allowance, reservation.
-- Returns at least four things. For the settlements: nothing when all were counted, else one number each: 0 when it was
-- counted in all budgets of its subject, else the sum of 1 for the first that did not count it, 2 for the second, 4 for
-- the third and so on; or an error. For each admission: the limit that refuses, 'unknown' or '', then requests and tokens
-- of each counter of its subject; or an error and zeros. The numbers of the subjects with admissions that are near a limit
-- (near.lua), and those with an allowance. What was granted (`grant_all`). Then the standing (spend.lua) of each budget, empty where it could not be counted.

-- Hands a settlement to the limits of its subject.
local function distribute(row, subject, name, cost, extra, source)
    for _, counter in ipairs(subject.token_counters) do counter.extra = counter.extra + extra end
    for _, place in ipairs(source == 0 and subject.places or {}) do place.ended[#place.ended + 1] = name end
    for position, scope in ipairs(subject.scopes) do
        local index = #scope.ended + 1
        scope.ended[index], scope.costs[index] = name, cost
        scope.rows[index], scope.flags[index], scope.sources[index] = row, 2 ^ (position - 1), source
    end
end

local function settle()
    local answers, all_counted = {}, true
    local of_subject, names, costs, extras, sources = unpack(SETTLEMENTS)
    for row, name in ipairs(names) do
        answers[row] = 0
        distribute(row, subjects[of_subject[row]], name, costs[row], extras[row], sources[row])
    end
    for _, counter in ipairs(counters) do correct_tokens(counter) end
    for _, place in ipairs(places) do free_places(place) end
    for _, scope in ipairs(scopes) do try(scope, settle_all, answers) end
    for _, scope in ipairs(scopes) do
        for _, row in ipairs(scope.error and scope.rows or {}) do answers[row] = scope.error end
    end
    for _, answer in ipairs(answers) do all_counted = all_counted and answer == 0 end
    return all_counted and {} or answers
end

local function admit_all()
    local answers = {}
    local of_subject, names, tokens = unpack(ADMISSIONS)
    for row, name in ipairs(names) do
        local subject = subjects[of_subject[row]]
        subject.is_admitting = true
        local failed = error_of(subject)
        answers[#answers + 1] = failed or admit(subject, name, tokens[row])
        for _, counter in ipairs(subject.counters) do
            answers[#answers + 1] = failed and 0 or counter.requests
            answers[#answers + 1] = failed and 0 or counter.tokens
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

read_minutes()
for _, scope in ipairs(scopes) do try(scope, read) end
for _, allowance in ipairs(allowances) do close_allowance(allowance) end
reserve_taken()
local reply = {settle(), admit_all(), {}, grant_all()}
reply[3] = near_subjects()
for _, counter in ipairs(counters) do write_minute(counter) end
for _, place in ipairs(places) do write_places(place) end
for index, scope in ipairs(scopes) do reply[index + 4] = close(scope) end
return reply
