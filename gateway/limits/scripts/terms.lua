-- The limits of a batch and the requests that they apply to. batch.lua describes KEYS and ARGV.
local LEASE, RUN = tonumber(ARGV[1]), ARGV[2]
local NOW, WAITS, COUNTERS, PLACES, BUDGETS, SUBJECTS, SETTLEMENTS, ADMISSIONS, ALLOWANCES, TAKEN =
    unpack(cmsgpack.unpack(ARGV[3]))

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
        requests = 0, tokens = 0, extra = 0, admitted = false, returned = false,
    }
end
for number, terms in ipairs(PLACES) do
    places[number] = {name = terms[1], limit = terms[2], key = next_key(), made = {}, ended = {}}
end
-- `made` holds the reservations to write; `ended`, `costs`, `rows`, `flags` and `sources` hold the settled reservations,
-- their costs, their rows among the settlements, the numbers that stand for this scope in the answers to these, and the
-- numbers of the allowances that they were taken from, 0 without. `holds` has the allowances that this scope knew.
for number, terms in ipairs(BUDGETS) do
    scopes[number] = {
        name = terms[1], budget = terms[2], refuses = terms[3], ttl = terms[4], set_at = terms[5], known = terms[6],
        spend = next_key(), reservations = next_key(),
        made = {}, ended = {}, costs = {}, rows = {}, flags = {}, sources = {}, holds = {},
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

-- What is leased of the minutes, for display: allowances by their ids. The last key, where there are allowances.
local LEASED = KEYS[#KEYS]

local allowances = {}
for number, terms in ipairs(ALLOWANCES) do
    allowances[number] = {
        number = number, subject = subjects[terms[1]], name = terms[2], id = terms[3], first = terms[4], taken = terms[5],
        kept = terms[6], kept_cost = terms[7], back = terms[8], back_tokens = terms[9], wanted = terms[10],
        tokens = terms[11], cost = terms[12], since = terms[13], granted = 0, has_slots = {},
    }
end
