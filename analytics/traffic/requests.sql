-- As the shipper would insert them.
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, api_key_id, source, session_id, user_id,
    provider, model, requested_model, error_type, error_code, error_message, finish_reason, is_stream, cache_status,
    retry_count, fallback_used, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
    reasoning_tokens, tokens_estimated, cost_known, cost_input_usd, cost_cache_read_usd, cost_cache_write_usd,
    cost_output_usd, cost_usd, latency_ms, ttft_ms, retention_days, attempts, attributes,
    spans_derived, prompt, completion, request, response
)
$history
SELECT
    {project:UUID}, fromUnixTimestamp64Micro(us, 'UTC'), request_id,
    multiIf(is_served, 'success', status = 499, 'cancelled', fate = 'interrupted', 'interrupted', 'error'),
    status, api_key, 'gateway', session_name, user_name,
    if(is_tried, by_provider, ''), if(is_tried, by_model, ''), requested, error_type, error_code, error_message,
    finish, streams, 'skip', fate IN ('served_again', 'failed'), fate = 'served_elsewhere',
    prompt_tokens, completion_tokens, cache_read, cache_write, reasoning, fate = 'left_late', is_tried,
    toDecimal64(input_units, 0) * unit, toDecimal64(cache_read_units, 0) * unit,
    toDecimal64(cache_write_units, 0) * unit, toDecimal64(output_units, 0) * unit, cost,
    latency, if(has_output, latency - if(streams, toUInt32(writing_ms), 0), 0), {retention_days:UInt16},
    multiIf(
        NOT is_tried, '',
        fate = 'failed', concat('[', stumble, first_offset, '},', stumble, last_offset, '}]'),
        stumbles, concat('[', stumble, first_offset, '},', last_attempt, ']'),
        concat('[', last_attempt, ']')
    ),
    -- As keys of four teams with metadata would have it.
    map(
        'metadata.team', ['search', 'shop', 'support', 'billing'][1 + api_key % 4],
        'metadata.stage', if(api_key % 3 = 0, 'test', 'production')
    ),
    true,
    if({with_texts:Bool}, concat(prompt_head, own_words, prompt_tail), ''), completion,
    if(
        {with_texts:Bool},
        concat('{"model":"', requested, if(streams, '","stream":true,', '",'), request_head, own_words, request_tail), ''
    ),
    if(
        completion = '', '',
        concat(
            '{"id":"chatcmpl-', toString(request_id), '","object":"chat.completion","created":',
            toString(intDiv(us, 1000000)), ',"model":"', by_model, '","choices":[{"index":0,"message":',
            '{"role":"assistant","content":', completion_json, '},"finish_reason":',
            if(is_served, concat('"', finish, '"'), 'null'), '}],"usage":{"prompt_tokens":', toString(prompt_tokens),
            ',"completion_tokens":', toString(completion_tokens), ',"total_tokens":',
            toString(prompt_tokens + completion_tokens), '}}'
        )
    )
FROM explained
