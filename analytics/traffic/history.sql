-- The requests of one slice, step by step: its sessions unfold into turns, and each turn gets its outcome.
-- UNIFORM(x, …) is a number from 0 to below 1, NORMAL(x, …) a standard normal one, made of their arguments alone.
-- $drawn gives the sessions. h is the hash from which all chance of a session comes; prefix is that of its id, '' for one
-- by its kind; named tells if it has an id; then turns, begun (µs), and pause (median seconds between turns, 0 for that
-- of the kind).
-- The steps are many and small, because ClickHouse analyses an alias again for each alias of the same SELECT that uses it.
WITH
    drawn AS (
        SELECT
            h, prefix, named, turns, begun, pause,
            -- 1 chat, 2 support, 3 agent, 4 pipeline
            toUInt8(1 + (UNIFORM(h, 1) > 0.52) + (UNIFORM(h, 1) > 0.76) + (UNIFORM(h, 1) > 0.92)) AS kind
        FROM ($drawn) WHERE sipHash64(h, 14) % {one_in:UInt32} = 0 OR prefix != ''
    ),
    -- The values that all turns of a session share.
    characters AS (
        SELECT
            h, kind, turns, begun,
            if(prefix = '', ['chat', 'support', 'agent', 'pipeline'][kind], prefix) AS first_word,
            if(named, concat(first_word, '-', lower(hex(sipHash64(h, 2)))), '') AS session_name,
            toUInt32(pow({users:UInt32} + 1, UNIFORM(h, 3))) AS user_number,
            if(UNIFORM(h, 4) < 0.06, '', concat('user-', leftPad(toString(user_number), 6, '0'))) AS user_name,
            {api_keys:Array(UInt64)}[1 + sipHash64(h, 5) % length({api_keys:Array(UInt64)})] AS api_key,
            arrayFirstIndex(share -> share > UNIFORM(h, 6), {shares:Array(Float64)}) AS usual_model,
            -- Instructions, tools and documents of the managed prompt: part of the context, not of the request.
            toUInt32([240, 700, 2600, 1500][kind] * exp(0.8 * NORMAL(h, 7))) AS instructions,
            if(pause > 0, pause, [40., 75., 4., 2.][kind]) AS seconds
        FROM drawn
    ),
    paced AS (
        SELECT
            *,
            arrayCumSum(arrayMap(
                k -> if(k = 0, 0, if(UNIFORM(h, 8, k) < 0.004, 32000, seconds) * exp(0.9 * NORMAL(h, 9, k))), range(turns)
            )) AS offsets
        FROM characters
    ),
    -- Sessions that would go on after the period begin earlier, and not all at the same moment before its end.
    timed AS (
        SELECT *, 1000000 * least(offsets[-1], ({until:Int64} - {since:Int64}) / 1000000 - 1800) AS lasts FROM paced
    ),
    sessions AS (
        SELECT
            *, lasts / greatest(offsets[-1], 0.000001) AS scale,
            least(begun, {until:Int64} - toInt64(lasts + 1800000000 * UNIFORM(h, 13))) AS starts
        FROM timed
    ),
    turned AS (
        SELECT
            h, kind, session_name, user_name, api_key, usual_model, instructions, turn,
            starts + toInt64(scale * offset) AS us, sipHash64(h, 10, turn) AS g
        FROM sessions ARRAY JOIN offsets AS offset, arrayEnumerate(offsets) AS turn
    ),
    -- The model, the mode and the conversation of each request, and the chances that decide its fate.
    selected AS (
        SELECT
            *, UNIFORM(g, 4) AS chance, UNIFORM(g, 6) AS rescue, UNIFORM(g, 7) AS weakness,
            UNIFORM(g, 3) < [0.9, 0.8, 0.3, 0.][kind] AS streams,
            if(
                UNIFORM(g, 1) < 0.05, arrayFirstIndex(share -> share > UNIFORM(g, 2), {shares:Array(Float64)}), usual_model
            ) AS requested_model,
            1 + sipHash64(h, 11, intDiv(turn - 1, 3)) % length({firsts:Array(UInt32)}) AS conversation
        FROM turned
    ),
    met AS (
        SELECT
            *, {providers:Array(String)}[requested_model] AS requested_provider,
            {models:Array(String)}[requested_model] AS requested_name,
            -- Now and then a provider has a bad half hour.
            sipHash64({salt:UInt64}, requested_provider, intDiv(us, 1800000000)) % 700 = 0 AS is_bad_time,
            multiIf(weakness < 0.45, 'rate_limited', weakness < 0.8, 'unavailable', 'timeout') AS trouble,
            {firsts:Array(UInt32)}[conversation]
                + least((turn - 1) % 3, {lengths:Array(UInt32)}[conversation] - 1) AS text_id
        FROM selected
    ),
    fated AS (
        SELECT
            *,
            multiIf(
                chance < 0.0004, 'unknown_model', chance < 0.0054, 'rate_limited', chance < 0.006, 'over_budget',
                chance < 0.01, 'rejected', chance < 0.0115, 'unusable', chance < 0.0175, 'left_early',
                chance < 0.0245, if(streams, 'left_late', 'left_early'), chance < 0.0246, 'interrupted',
                UNIFORM(g, 5) >= if(is_bad_time, 0.45, 0.012), 'served',
                rescue < if(is_bad_time, 0.1, 0.45), 'served_again', rescue < 0.8, 'served_elsewhere', 'failed'
            ) AS fate
        FROM met
    ),
    judged AS (
        SELECT
            *,
            fate IN ('served', 'served_again', 'served_elsewhere') AS is_served,
            fate IN ('served', 'served_again', 'served_elsewhere', 'left_late') AS has_output,
            fate IN ('served_again', 'served_elsewhere', 'failed') AS stumbles,
            fate NOT IN ('unknown_model', 'rate_limited', 'over_budget', 'interrupted') AS is_tried,
            if(fate = 'served_elsewhere', {fallbacks:Array(UInt8)}[requested_model], requested_model) AS m,
            toUInt32(least(turn - 1, 60) * 150 * (0.7 + 0.6 * UNIFORM(h, 12))) AS history
        FROM fated
    ),
    -- The texts of each request, and the tokens that are billed, each once.
    read AS (
        SELECT
            a.*, t.* EXCEPT (id),
            {providers:Array(String)}[m] AS by_provider, {models:Array(String)}[m] AS by_model,
            {caching:Array(UInt8)}[m] AS caching,
            if(has_output, instructions + history + prompt_size, 0) AS prompt_tokens,
            if(has_output AND {thinks:Array(UInt8)}[m] = 1, toUInt32(260 * exp(0.9 * NORMAL(g, 9))), 0) AS reasoning
        FROM judged AS a ANY LEFT JOIN $texts AS t ON t.id = a.text_id
    ),
    cached AS (
        SELECT
            *, prompt_tokens >= 1024 AND UNIFORM(g, 8) < 0.8 AS is_cached,
            if(is_cached AND caching > 0 AND turn > 1, intDiv(instructions + history, 128) * 128, 0) AS cache_read,
            multiIf(
                is_served, answer_size + reasoning, has_output, intDiv(answer_size, 2) + 1 + reasoning, 0
            ) AS completion_tokens
        FROM read
    ),
    written AS (
        SELECT
            *, if(is_cached AND caching > 1, intDiv(prompt_tokens - cache_read, 2), 0) AS cache_write,
            {waits:Array(UInt32)}[m] * exp(0.45 * NORMAL(g, 10)) * (1 + prompt_tokens / 60000) AS wait_ms,
            completion_tokens * {paces:Array(Float64)}[m] * exp(0.25 * NORMAL(g, 11)) AS writing_ms,
            multiIf(
                NOT stumbles, 0, trouble = 'rate_limited', 90 + 120 * UNIFORM(g, 12),
                trouble = 'unavailable', 150 + 900 * UNIFORM(g, 12), 30000
            ) AS lost_ms,
            if(fate IN ('served_again', 'failed'), 500 * (0.5 + UNIFORM(g, 13)), 0) AS backoff_ms,
            -- Two words that nobody else uses, drawn like words of a language: the first are everywhere, the last rare.
            toUInt32(pow({words:UInt32}, UNIFORM(g, 16))) - 1 AS n1,
            toUInt32(pow({words:UInt32}, UNIFORM(g, 17))) - 1 AS n2
        FROM cached
    ),
    billed AS (
        SELECT
            *, (prompt_tokens - cache_read - cache_write) * {input_units:Array(UInt32)}[m] AS input_units,
            cache_read * {cache_read_units:Array(UInt32)}[m] AS cache_read_units,
            cache_write * {cache_write_units:Array(UInt32)}[m] AS cache_write_units,
            completion_tokens * {output_units:Array(UInt32)}[m] AS output_units,
            toUInt32(multiIf(
                has_output, wait_ms + writing_ms, fate = 'left_early', wait_ms * UNIFORM(g, 14),
                fate IN ('rejected', 'unusable'), 60 + wait_ms / 3, fate = 'failed', lost_ms * 1.1, 0
            )) AS last_ms,
            if(
                {with_texts:Bool},
                concat(
                    '[', WORD(n1), ' ', WORD(n2),
                    if(UNIFORM(g, 18) < 0.1, concat(', ', leftPad(hex(toUInt32(sipHash64(g, 19))), 8, '0')), ''), '] '
                ),
                ''
            ) AS own_words
        FROM written
    ),
    -- The values as the gateway records them.
    recorded AS (
        SELECT
            *,
            toDecimal64('0.0000000001', 10) AS unit,
            toDecimal64(input_units + cache_read_units + cache_write_units + output_units, 0) * unit AS cost,
            toUInt32(if(fate = 'interrupted', 0, 1 + UNIFORM(g, 15) * 3 + lost_ms + backoff_ms + last_ms)) AS latency,
            multiIf(
                is_served, 200, fate IN ('left_early', 'left_late'), 499, fate = 'unknown_model', 404,
                fate = 'rejected', 400, fate IN ('rate_limited', 'over_budget'), 429, fate = 'failed', 503, 500
            ) AS status,
            if(fate = 'unknown_model', 'gpt-4o-minni', requested_name) AS requested,
            multiIf(NOT is_served, '', UNIFORM(g, 20) < 0.015, 'length', 'stop') AS finish,
            -- A UUIDv7 (RFC 9562): milliseconds and version in one half, variant and chance in the other.
            reinterpret(
                bitOr(
                    bitShiftLeft(toUInt128(bitOr(bitShiftLeft(toUInt64(2), 62), bitShiftRight(sipHash64(g, 21, {project:UUID}), 2))), 64),
                    toUInt128(bitOr(bitShiftLeft(toUInt64(intDiv(us, 1000)), 16), 28672 + sipHash64(g, 22) % 4096))
                ),
                'UUID'
            ) AS request_id,
            multiIf(is_served, answer, has_output, begun_answer, '') AS completion,
            if(is_served, answer_json, begun_json) AS completion_json
        FROM billed
    ),
    explained AS (
        SELECT
            *,
            multiIf(
                status IN (200, 499), '', status = 404, 'not_found_error', status = 400, 'invalid_request_error',
                fate = 'rate_limited', 'rate_limit_error', status = 429, 'budget_error',
                status = 503, 'service_unavailable_error', 'api_error'
            ) AS error_type,
            multiIf(
                status IN (200, 499), '', status = 404, 'model_not_found', status = 400, 'provider_rejected',
                fate = 'rate_limited', 'requests_per_minute', status = 429, 'session_budget_exceeded',
                fate = 'unusable', 'provider_error', fate = 'interrupted', 'internal_error',
                trouble = 'timeout', 'provider_timeout', 'provider_unavailable'
            ) AS error_code,
            multiIf(
                status IN (200, 499), '', status = 404, concat('No enabled provider serves the model ', requested),
                status = 400, concat(by_provider, ': the input is longer than the context window'),
                fate = 'rate_limited', 'The project''s requests per minute are used up',
                status = 429, 'The session has used up its budget',
                fate = 'unusable', concat(by_provider, ': the answer cannot be read'),
                fate = 'interrupted', 'The worker died while the request was in flight.',
                trouble = 'rate_limited', concat(by_provider, ': rate limit reached, try again later'),
                trouble = 'unavailable', concat(by_provider, ': the service is overloaded'),
                concat(by_provider, ': the provider did not answer in time')
            ) AS error_message,
            concat(
                '{"provider":"', requested_provider, '","model":"', requested_name,
                multiIf(trouble = 'timeout', '"', trouble = 'rate_limited', '","status":429', '","status":503'),
                ',"error":"', trouble, '","latency_ms":', toString(toUInt32(lost_ms)), ',"offset_us":'
            ) AS stumble,
            toString(400 + sipHash64(g, 23) % 600) AS first_offset,
            toString(1000 * (latency - last_ms)) AS last_offset,
            -- The attempt that answered, that failed for good, or that the client did not wait for.
            concat(
                '{"provider":"', by_provider, '","model":"', by_model, '"',
                multiIf(has_output OR fate = 'unusable', ',"status":200', fate = 'rejected', ',"status":400', ''),
                multiIf(is_served, '', status = 499, ',"error":"cancelled"', concat(',"error":"', fate, '"')),
                if(last_ms > 0, concat(',"latency_ms":', toString(last_ms)), ''),
                if(prompt_tokens > 0, concat(',"prompt_tokens":', toString(prompt_tokens)), ''),
                if(completion_tokens > 0, concat(',"completion_tokens":', toString(completion_tokens)), ''),
                if(status IN (200, 499), concat(',"cost_usd":"', toDecimalString(cost, 10), '"'), ''),
                ',"offset_us":', if(stumbles, last_offset, first_offset), '}'
            ) AS last_attempt
        FROM recorded
    )
