-- The limits of a batch and the requests that they apply to. batch.lua describes KEYS and ARGV.
local LEASE, RUN = tonumber(ARGV[1]), ARGV[2]
local NOW, WAITS, COUNTERS, PLACES, BUDGETS, SUBJECTS, SETTLEMENTS, ADMISSIONS = unpack(cmsgpack.unpack(ARGV[3]))

local keys_taken = 0
local function next_key()
    keys_taken = keys_taken + 1
    return KEYS[keys_taken]
end

local counters, places, scopes, subjects = {}, {}, {}, {}
for number, terms in ipairs(COUNTERS) do
    counters[number] = {
        name = terms[1], requests_limit = terms[2], tokens_limit = terms[3],
        requests_key = next_key(), tokens_key = next_key(),
        requests = 0, tokens = 0, extra = 0, admitted = false,
    }
end
for number, terms in ipairs(PLACES) do
    places[number] = {name = terms[1], limit = terms[2], key = next_key(), made = {}, ended = {}}
end
-- `made` holds the reservations to write; `ended`, `costs`, `rows` and `flags` hold the settled reservations, their
-- costs, their rows among the settlements, and the numbers that stand for this scope in the answers to these.
for number, terms in ipairs(BUDGETS) do
    scopes[number] = {
        name = terms[1], budget = terms[2], refuses = terms[3], ttl = terms[4], set_at = terms[5], known = terms[6],
        spend = next_key(), reservations = next_key(),
        made = {}, ended = {}, costs = {}, rows = {}, flags = {},
    }
end

local function chosen(numbers, from)
    local found = {}
    for index, number in ipairs(numbers) do found[index] = from[number] end
    return found
end
for number, terms in ipairs(SUBJECTS) do
    subjects[number] = {
        counters = chosen(terms[1], counters), token_counters = chosen(terms[2], counters),
        places = chosen(terms[3], places), scopes = chosen(terms[4], scopes),
    }
end
