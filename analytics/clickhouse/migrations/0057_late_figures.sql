-- Figures that need not be there at once come from a table of their own. Each view behind `ingest` costs an insert 2 to
-- 10 ms of CPU, however small it is, and a host inserts every few seconds. Rows that say `figures_later` get the figures
-- of the twelve tables below from `requests`, which `../late_figures.py` reads again every 20 seconds for all hosts
-- together; `figures_windows` says up to when it has. All other rows, such as those of shippers of the former release,
-- get them in the insert itself, by `ingest_figures_mv`.
-- A plain view keeps the name and the text of each view that made a table of figures from `ingest`: from these texts
-- this release and the former one know what should be in the table (`../rollups.py`). They must be those of the views
-- that fill it but for their source.
-- While the views change, `ingest` takes no row, so that none is counted by both views of a table or by none. It has to
-- have its name, because the server forgets a view that is dropped only then: so a view that lacks its target,
-- `ingest_gate`, stands in the way. (A run that was broken off lets rows in for its first statements; one of a former
-- shipper that comes then may lack a figure, which the nightly reconciliation finds. So it finds a batch that was sent in
-- part before the migration and again after it.)
-- Reverse: drop `ingest_figures_mv`, the views of `ingest_figures` and the plain ones, and give the views of `../schema/`
-- back.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

ALTER TABLE requests ADD COLUMN IF NOT EXISTS figures_later Bool;

ALTER TABLE ingest ADD COLUMN IF NOT EXISTS figures_later Bool;

-- The windows of time whose rows have their figures. The last hundred rows stay: a window's is replaced by that of the
-- hundredth after it.
CREATE TABLE IF NOT EXISTS figures_windows (
    number UInt64, since DateTime64(3, 'UTC'), until DateTime64(3, 'UTC'), slices UInt32, is_made Bool,
    version UInt64 MATERIALIZED 2 * number + is_made, drop_date Date DEFAULT toDate('2149-01-01')
) ENGINE = ReplacingMergeTree(version) PARTITION BY drop_date ORDER BY number % 100
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS ingest_figures (
    project_id UUID, ts DateTime64(6, 'UTC'), outcome LowCardinality(String), status_code UInt16, api_key_id UInt64,
    team_id UInt64, session_id String, user_id String, source LowCardinality(String), provider LowCardinality(String), model LowCardinality(String),
    requested_model LowCardinality(String), error_type LowCardinality(String), error_code LowCardinality(String),
    retry_count UInt16, fallback_used Bool, prompt_tokens UInt32, completion_tokens UInt32, cache_read_tokens UInt32,
    cache_write_tokens UInt32, cost_known Bool, cost_usd Decimal(18, 10), latency_ms UInt32, ttft_ms UInt32,
    prompt_config_id UUID, prompt_version UInt32, rollout_id UUID, rollout_stage UInt16, variant LowCardinality(String),
    contract_violation Bool, attempts String, attributes Map(LowCardinality(String), String),
    operation LowCardinality(String) DEFAULT 'chat', retention_days UInt16
) ENGINE = Null;

CREATE TABLE IF NOT EXISTS ingest_gate (project_id UUID) ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS ingest_gate_mv TO ingest_gate AS SELECT project_id FROM ingest;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

DROP TABLE IF EXISTS ingest_gate SYNC;

RENAME TABLE IF EXISTS ingest_closed TO ingest;

ALTER TABLE requests_mv MODIFY QUERY
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;

-- After MODIFY QUERY a table knows batches by another name of its view, until that is renamed (`../log_columns.py`).
RENAME TABLE IF EXISTS requests_mv TO requests_mv_renamed;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

CREATE MATERIALIZED VIEW IF NOT EXISTS ingest_figures_mv TO ingest_figures AS
SELECT
    project_id, ts, outcome, status_code, api_key_id, team_id, session_id, user_id, source, provider, model,
    requested_model, error_type, error_code, retry_count, fallback_used, prompt_tokens, completion_tokens,
    cache_read_tokens, cache_write_tokens, cost_known, cost_usd, latency_ms, ttft_ms, prompt_config_id, prompt_version,
    rollout_id, rollout_stage, variant, contract_violation, attempts, attributes, operation, retention_days
FROM ingest AS i WHERE NOT i.figures_later;

-- The views qualify their inputs (i.), because an alias of the same name would win otherwise.
DROP VIEW IF EXISTS requests_minute_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS requests_minute_figures_mv TO requests_minute AS
SELECT
    project_id, toStartOfMinute(i.ts, 'UTC') AS minute, provider, model, prompt_config_id, prompt_version,
    rollout_id, rollout_stage, variant, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q,
    countIf(i.contract_violation) AS contract_violations
FROM ingest_figures AS i
GROUP BY
    project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant,
    drop_date, operation;

CREATE VIEW IF NOT EXISTS requests_minute_mv AS
SELECT
    project_id, toStartOfMinute(i.ts, 'UTC') AS minute, provider, model, prompt_config_id, prompt_version,
    rollout_id, rollout_stage, variant, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q,
    countIf(i.contract_violation) AS contract_violations
FROM ingest AS i
GROUP BY
    project_id, minute, provider, model, prompt_config_id, prompt_version, rollout_id, rollout_stage, variant,
    drop_date, operation;

DROP VIEW IF EXISTS requests_hourly_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS requests_hourly_figures_mv TO requests_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest_figures AS i GROUP BY project_id, hour, provider, model, drop_date, operation;

CREATE VIEW IF NOT EXISTS requests_hourly_mv AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, hour, provider, model, drop_date, operation;

DROP VIEW IF EXISTS requests_daily_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS requests_daily_figures_mv TO requests_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest_figures AS i GROUP BY project_id, day, provider, model, drop_date, operation;

CREATE VIEW IF NOT EXISTS requests_daily_mv AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.latency_ms, i.source != 'batch') AS latency_q,
    countIf(i.ttft_ms > 0) AS streamed,
    quantilesTDigestStateIf(0.5, 0.95, 0.99)(i.ttft_ms, i.ttft_ms > 0) AS ttft_q
FROM ingest AS i GROUP BY project_id, day, provider, model, drop_date, operation;

DROP VIEW IF EXISTS users_hourly_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS users_hourly_figures_mv TO users_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest_figures AS i GROUP BY project_id, hour, user_id, drop_date, operation;

CREATE VIEW IF NOT EXISTS users_hourly_mv AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest AS i GROUP BY project_id, hour, user_id, drop_date, operation;

DROP VIEW IF EXISTS users_daily_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS users_daily_figures_mv TO users_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest_figures AS i GROUP BY project_id, day, user_id, drop_date, operation;

CREATE VIEW IF NOT EXISTS users_daily_mv AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, user_id, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation,
    min(i.ts) AS first_at, max(i.ts) AS last_at,
    count() AS requests, countIf(i.source = 'batch') AS batched,
    countIf(i.outcome IN ('error', 'interrupted')) AS errors,
    countIf(i.outcome = 'cancelled') AS cancelled, countIf(NOT i.cost_known) AS unpriced,
    sum(toUInt64(i.prompt_tokens)) AS prompt_tokens, sum(toUInt64(i.completion_tokens)) AS completion_tokens,
    sum(toUInt64(i.cache_read_tokens)) AS cache_read_tokens, sum(toUInt64(i.cache_write_tokens)) AS cache_write_tokens,
    sum(toDecimal128(i.cost_usd, 10)) AS cost_usd, sum(toUInt64(i.latency_ms)) AS latency_sum_ms,
    groupUniqArrayIf(toString(i.model), i.model != '') AS models,
    uniqExactStateIf(cityHash64(i.session_id), i.session_id != '' AND i.user_id != '') AS session_set
FROM ingest AS i GROUP BY project_id, day, user_id, drop_date, operation;

DROP VIEW IF EXISTS spend_hourly_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS spend_hourly_figures_mv TO spend_hourly AS
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
FROM ingest_figures AS i
GROUP BY project_id, hour, api_key_id, source, prompt_config_id, prompt_version, operation, drop_date, team_id;

CREATE VIEW IF NOT EXISTS spend_hourly_mv AS
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

DROP VIEW IF EXISTS request_kinds_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS request_kinds_figures_mv TO request_kinds AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, outcome, status_code, source, provider, model, requested_model, error_type,
    error_code, prompt_config_id, prompt_version, rollout_id, variant,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests
FROM ingest_figures AS i
GROUP BY
    project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
    prompt_config_id, prompt_version, rollout_id, variant, drop_date, operation;

CREATE VIEW IF NOT EXISTS request_kinds_mv AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, outcome, status_code, source, provider, model, requested_model, error_type,
    error_code, prompt_config_id, prompt_version, rollout_id, variant,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests
FROM ingest AS i
GROUP BY
    project_id, day, outcome, status_code, source, provider, model, requested_model, error_type, error_code,
    prompt_config_id, prompt_version, rollout_id, variant, drop_date, operation;

DROP VIEW IF EXISTS request_latencies_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS request_latencies_figures_mv TO request_latencies AS
SELECT
    project_id, latency_ms, toDate(i.ts, 'UTC') AS day, outcome,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests
FROM ingest_figures AS i
GROUP BY project_id, latency_ms, day, outcome, drop_date;

CREATE VIEW IF NOT EXISTS request_latencies_mv AS
SELECT
    project_id, latency_ms, toDate(i.ts, 'UTC') AS day, outcome,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests
FROM ingest AS i
GROUP BY project_id, latency_ms, day, outcome, drop_date;

DROP VIEW IF EXISTS failovers_quarter_hourly_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS failovers_quarter_hourly_figures_mv TO failovers_quarter_hourly AS
SELECT
    project_id, quarter, pair.1.1 AS from_provider, pair.1.4 AS from_deployment, pair.1.2 AS from_model,
    pair.2.1 AS to_provider, pair.2.4 AS to_deployment, pair.2.2 AS to_model, pair.1.3 AS error,
    pair.2.3 = '' AS served, drop_date, count() AS requests, max(at) AS last_at
FROM (
    SELECT
        i.project_id AS project_id, toStartOfInterval(i.ts, INTERVAL 15 MINUTE, 'UTC') AS quarter, i.ts AS at,
        toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
        arrayMap(
            call -> (call.1, call.2, call.3, if(call.4 = '', call.1, call.4)),
            JSONExtract(
                i.attempts, 'Array(Tuple(provider String, model String, error String, deployment String))'
            )
        ) AS calls,
        arrayJoin(arrayFilter(
            pair -> (pair.1.1, pair.1.2, pair.1.4) != (pair.2.1, pair.2.2, pair.2.4),
            arrayZip(arrayPopBack(calls), arrayPopFront(calls))
        )) AS pair
    FROM ingest_figures AS i WHERE i.fallback_used OR i.retry_count > 0
)
GROUP BY
    project_id, quarter, from_provider, from_deployment, from_model, to_provider, to_deployment, to_model, error, served,
    drop_date;

CREATE VIEW IF NOT EXISTS failovers_quarter_hourly_mv AS
SELECT
    project_id, quarter, pair.1.1 AS from_provider, pair.1.4 AS from_deployment, pair.1.2 AS from_model,
    pair.2.1 AS to_provider, pair.2.4 AS to_deployment, pair.2.2 AS to_model, pair.1.3 AS error,
    pair.2.3 = '' AS served, drop_date, count() AS requests, max(at) AS last_at
FROM (
    SELECT
        i.project_id AS project_id, toStartOfInterval(i.ts, INTERVAL 15 MINUTE, 'UTC') AS quarter, i.ts AS at,
        toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
        arrayMap(
            call -> (call.1, call.2, call.3, if(call.4 = '', call.1, call.4)),
            JSONExtract(
                i.attempts, 'Array(Tuple(provider String, model String, error String, deployment String))'
            )
        ) AS calls,
        arrayJoin(arrayFilter(
            pair -> (pair.1.1, pair.1.2, pair.1.4) != (pair.2.1, pair.2.2, pair.2.4),
            arrayZip(arrayPopBack(calls), arrayPopFront(calls))
        )) AS pair
    FROM ingest AS i WHERE i.fallback_used OR i.retry_count > 0
)
GROUP BY
    project_id, quarter, from_provider, from_deployment, from_model, to_provider, to_deployment, to_model, error, served,
    drop_date;

DROP VIEW IF EXISTS error_kinds_hourly_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS error_kinds_hourly_figures_mv TO error_kinds_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model, error_type, error_code, status_code,
    if(i.operation = 'chat', '', i.operation) AS operation, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, min(i.ts) AS first_at, max(i.ts) AS last_at
FROM ingest_figures AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, hour, provider, model, error_type, error_code, status_code, operation, drop_date;

CREATE VIEW IF NOT EXISTS error_kinds_hourly_mv AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, provider, model, error_type, error_code, status_code,
    if(i.operation = 'chat', '', i.operation) AS operation, toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    count() AS requests, min(i.ts) AS first_at, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, hour, provider, model, error_type, error_code, status_code, operation, drop_date;

DROP VIEW IF EXISTS errors_daily_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS errors_daily_figures_mv TO errors_daily AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, error_type, error_code, status_code,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests, max(i.ts) AS last_at
FROM ingest_figures AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, day, provider, model, error_type, error_code, status_code, drop_date, operation;

CREATE VIEW IF NOT EXISTS errors_daily_mv AS
SELECT
    project_id, toDate(i.ts, 'UTC') AS day, provider, model, error_type, error_code, status_code,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    if(i.operation = 'chat', '', i.operation) AS operation, count() AS requests, max(i.ts) AS last_at
FROM ingest AS i WHERE i.outcome IN ('error', 'interrupted')
GROUP BY project_id, day, provider, model, error_type, error_code, status_code, drop_date, operation;

DROP VIEW IF EXISTS guardrails_hourly_mv SYNC;

CREATE MATERIALIZED VIEW IF NOT EXISTS guardrails_hourly_figures_mv TO guardrails_hourly AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, verdict.1 AS guardrail, verdict.2 AS stage, verdict.3 AS action,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests, max(i.ts) AS last_at
FROM ingest_figures AS i
ARRAY JOIN arrayDistinct(JSONExtract(
    i.attributes['guardrails'], 'Array(Tuple(guardrail String, stage String, action String))'
)) AS verdict
WHERE i.attributes['guardrails'] != '' GROUP BY project_id, hour, guardrail, stage, action, drop_date;

CREATE VIEW IF NOT EXISTS guardrails_hourly_mv AS
SELECT
    project_id, toStartOfHour(i.ts, 'UTC') AS hour, verdict.1 AS guardrail, verdict.2 AS stage, verdict.3 AS action,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date, count() AS requests, max(i.ts) AS last_at
FROM ingest AS i
ARRAY JOIN arrayDistinct(JSONExtract(
    i.attributes['guardrails'], 'Array(Tuple(guardrail String, stage String, action String))'
)) AS verdict
WHERE i.attributes['guardrails'] != '' GROUP BY project_id, hour, guardrail, stage, action, drop_date;

DROP VIEW IF EXISTS ingest_gate_mv SYNC;
