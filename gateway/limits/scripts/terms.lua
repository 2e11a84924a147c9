-- What the requests of a batch have in common. batch.lua says what KEYS and ARGV are.
local REQUESTS, TOKENS = KEYS[1], KEYS[2]
local REQUESTS_LIMIT, TOKENS_LIMIT, MONTH_BUDGET, HARD_STOP, SESSION_BUDGET = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local LEASE, RUN, SET_AT, NOW = ARGV[6], ARGV[7], ARGV[8], ARGV[9]

local month
if MONTH_BUDGET ~= '' then
    month = {spend = KEYS[3], held = KEYS[4], budget = MONTH_BUDGET, known = ARGV[10], ttl = 3456000}
end

local sessions = {}
for index = 1, (#KEYS - 4) / 2 do
    sessions[index] = {
        spend = KEYS[3 + 2 * index], held = KEYS[4 + 2 * index],
        budget = SESSION_BUDGET, known = ARGV[10 + index], ttl = 2592000,
    }
end
