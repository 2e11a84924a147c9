-- What providers' failures led to, in quarters of an hour: each pair of an attempt that failed and the next one at another
-- model, deployment or provider, whether that one served the request, and how many requests had both. The attempts of a
-- request are a text of JSON: of a hundred million requests the failovers of a week read and parsed those of every retried
-- request, 380 ms of CPU, where the quarters of a week are a few thousand rows. A deployment that an attempt does not name
-- is called like its provider, and a retry of the same one is no failover.
CREATE TABLE IF NOT EXISTS failovers_quarter_hourly (
    project_id UUID, quarter DateTime('UTC'),
    from_provider LowCardinality(String), from_deployment LowCardinality(String), from_model LowCardinality(String),
    to_provider LowCardinality(String), to_deployment LowCardinality(String), to_model LowCardinality(String),
    error LowCardinality(String), served Bool, drop_date Date,
    requests SimpleAggregateFunction(sum, UInt64), last_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(drop_date)
ORDER BY (
    project_id, quarter, from_provider, from_deployment, from_model, to_provider, to_deployment, to_model, error, served,
    drop_date
) TTL drop_date
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;

-- The view qualifies its inputs (i.), because an alias of the same name would win otherwise.
CREATE MATERIALIZED VIEW IF NOT EXISTS failovers_quarter_hourly_mv TO failovers_quarter_hourly AS
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
