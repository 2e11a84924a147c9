-- What the requests of a batch have in common. batch.lua says what KEYS and ARGV are.
local REQUESTS, TOKENS = KEYS[1], KEYS[2]
local REQUESTS_LIMIT, TOKENS_LIMIT, MONTH_BUDGET, HARD_STOP = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'
local SESSION_BUDGET, LEASE, RUN, SET_AT = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
local NOW, EXTRA_TOKENS, KNOWN, SETTLED, ASKED, WAITS = unpack(cmsgpack.unpack(ARGV[9]))

-- `made`: reservations to be written. `ended`: those that are settled, what they cost, and which settlements they are.
local function scope_of(number, budget, ttl)
    return {
        spend = KEYS[3 + 2 * number], held = KEYS[4 + 2 * number], ttl = ttl,
        budget = tonumber(budget), known = KNOWN[1 + number],
        made = {}, ended = {}, costs = {}, places = {},
    }
end

local month = MONTH_BUDGET ~= '' and scope_of(0, MONTH_BUDGET, 3456000)

local sessions = {}
for number = 1, (#KEYS - 4) / 2 do sessions[number] = scope_of(number, SESSION_BUDGET, 2592000) end
