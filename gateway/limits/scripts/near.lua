-- Which requests are near a limit: those of a subject of which half of the minute's tokens or half of the places are
-- taken, or of a budget in which reservations take at least half of what is not spent. Workers settle these requests
-- without delay, because a reservation that stays could refuse another request.

local function is_near(subject)
    for _, counter in ipairs(subject.counters) do
        if counter.tokens_limit and 2 * counter.tokens >= counter.tokens_limit then return true end
    end
    for _, place in ipairs(subject.places) do
        if not place.open or 2 * place.open >= place.limit then return true end
    end
    for _, scope in ipairs(subject.scopes) do
        if scope.error then return true end
        if scope.refuses and spent_of(scope) + 2 * scope.reserved >= scope.budget then return true end
    end
    return false
end

-- Returns the numbers of the subjects with admissions that are near a limit.
local function near_subjects()
    local near = {}
    for number, subject in ipairs(subjects) do
        if subject.is_admitting and is_near(subject) then near[#near + 1] = number end
    end
    return near
end
