-- The limits that all requests of a batch share. batch.lua describes KEYS and ARGV.
local REQUESTS, TOKENS = KEYS[1], KEYS[2]
local REQUESTS_LIMIT, TOKENS_LIMIT, MONTH_BUDGET, HARD_STOP = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'
local SESSION_BUDGET, LEASE, RUN, SET_AT = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
local NOW, EXTRA_TOKENS, KNOWN, SETTLEMENTS, ADMISSIONS, WAITS = unpack(cmsgpack.unpack(ARGV[9]))

-- Returns a scope of the batch. `made` holds the reservations to write; `ended`, `costs` and `places` hold the settled
-- reservations, their costs and their positions among the settlements.
local function scope_of(number, budget, ttl)
    return {
        spend = KEYS[3 + 2 * number], reservations = KEYS[4 + 2 * number], ttl = ttl,
        budget = tonumber(budget), known = KNOWN[1 + number],
        made = {}, ended = {}, costs = {}, places = {},
    }
end

local month = MONTH_BUDGET ~= '' and scope_of(0, MONTH_BUDGET, 3456000)

local sessions = {}
for number = 1, (#KEYS - 4) / 2 do sessions[number] = scope_of(number, SESSION_BUDGET, 2592000) end
