-- The gateway's own spans of these requests: one for the request, one for the call of the provider that it ended with.
INSERT INTO otel_traces (
    ProjectId, Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName,
    SpanAttributes, Duration, StatusCode, StatusMessage, RecordId, DropDate
)
$history,
numbered AS (
    SELECT
        *, part, toString(request_id) AS id, sipHash64(request_id, part) AS record,
        leftPad(lower(hex(record)), 16, '0') AS span, leftPad(lower(hex(sipHash64(request_id, 1))), 16, '0') AS root
    FROM explained ARRAY JOIN if(is_tried, [1, 2], [1]) AS part
    WHERE session_name != ''
)
SELECT
    {project:UUID}, fromUnixTimestamp64Nano(1000 * (us + if(part = 1, 0, 1000 * (latency - last_ms))), 'UTC'),
    replaceAll(id, '-', ''), span, if(part = 1, '', root),
    if(part = 1, 'POST /api/gateway/v1/chat/completions', concat('chat ', by_model)), if(part = 1, 'Server', 'Client'),
    'prompt-gateway', map('service.name', 'prompt-gateway'), 'prompt_gateway',
    mapFilter((k, v) -> v != '', if(
        part = 1,
        map(
            'http.request.method', 'POST', 'http.route', '/api/gateway/v1/chat/completions',
            'http.response.status_code', toString(status), 'error.type', if(status >= 500, error_code, ''),
            'llm.session_id', session_name, 'session.id', session_name, 'user.id', user_name,
            'prompt_gateway.request_id', id, 'prompt_gateway.cache', 'skip'
        ),
        map(
            'gen_ai.operation.name', 'chat', 'gen_ai.provider.name', by_provider, 'gen_ai.request.model', by_model,
            'gen_ai.request.stream', if(streams, 'true', ''), 'gen_ai.session_id', session_name,
            'gen_ai.conversation.id', session_name,
            'gen_ai.usage.input_tokens', if(prompt_tokens > 0, toString(prompt_tokens), ''),
            'gen_ai.usage.output_tokens', if(completion_tokens > 0, toString(completion_tokens), ''),
            'error.type', if(is_served OR status = 499, '', fate), 'prompt_gateway.request_id', id
        )
    )),
    1000000 * toUInt64(if(part = 1, latency, last_ms)),
    if(status >= 500, 'Error', 'Unset'), if(status >= 500, error_code, ''),
    record, toDate(fromUnixTimestamp64Micro(us, 'UTC')) + {telemetry_days:UInt16}
FROM numbered
