-- A log record for each of these requests, as an application might write it.
INSERT INTO otel_logs (
    ProjectId, Timestamp, TraceId, SeverityText, SeverityNumber, ServiceName, Body, ResourceAttributes, ScopeName,
    LogAttributes, DropDate
)
$history
SELECT
    {project:UUID}, fromUnixTimestamp64Nano(1000 * (us + 1000 * latency), 'UTC'), replaceAll(toString(request_id), '-', ''),
    if(status >= 500, 'ERROR', 'INFO'), if(status >= 500, 17, 9), 'assistant',
    if(error_code = '', 'answer received', concat('request failed: ', error_code)), map('service.name', 'assistant'),
    'assistant.client',
    map('gen_ai.session_id', session_name, 'user.id', user_name, 'http.response.status_code', toString(status)),
    toDate(fromUnixTimestamp64Micro(us, 'UTC')) + {telemetry_days:UInt16}
FROM explained WHERE session_name != ''
