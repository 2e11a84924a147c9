-- The team that a request's key belonged to, 0 without one: in the log and, because an anonymised request keeps it, in
-- `anonymised`, and in the key of the cost per hour, by which budgets of teams are counted.
-- A key can only be extended by a column without a default: the rows that are there belong to no team, which new rows
-- without one write as well, so that both merge and nothing has to be counted again.
-- The views are changed and renamed as README.md says; `ingest` and `anonymised` are away meanwhile. Every statement can
-- run again.
-- Reverse: give the views their former queries, and drop the column in the three tables of the log. It stays in the key.
RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS anonymised_requests_mv_renamed TO anonymised_requests_mv;

RENAME TABLE IF EXISTS spend_hourly_mv_renamed TO spend_hourly_mv;

ALTER TABLE requests ADD COLUMN IF NOT EXISTS team_id UInt64;

ALTER TABLE anonymised ADD COLUMN IF NOT EXISTS team_id UInt64;

ALTER TABLE ingest ADD COLUMN IF NOT EXISTS team_id UInt64;

ALTER TABLE spend_hourly
    ADD COLUMN IF NOT EXISTS team_id UInt64,
    MODIFY ORDER BY (
        project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date, team_id
    );

ALTER TABLE requests_mv MODIFY QUERY
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;

ALTER TABLE anonymised_requests_mv MODIFY QUERY
SELECT * EXCEPT had_user FROM anonymised;

ALTER TABLE spend_hourly_mv MODIFY QUERY
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, api_key_id, source, prompt_config_id, prompt_version,
    if(i.operation = 'chat', '', i.operation) AS operation, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    team_id,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms
FROM ingest AS i
GROUP BY project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date, team_id;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS anonymised TO anonymised_closed;

RENAME TABLE IF EXISTS requests_mv TO requests_mv_renamed;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS anonymised_requests_mv TO anonymised_requests_mv_renamed;

RENAME TABLE IF EXISTS anonymised_requests_mv_renamed TO anonymised_requests_mv;

RENAME TABLE IF EXISTS spend_hourly_mv TO spend_hourly_mv_renamed;

RENAME TABLE IF EXISTS spend_hourly_mv_renamed TO spend_hourly_mv;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
