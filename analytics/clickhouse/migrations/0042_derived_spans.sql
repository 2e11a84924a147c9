-- The gateway's own spans are derived from `requests` when a session is read, instead of being stored in `otel_traces`
-- and `otel_session_spans` beside it: they were a quarter of what a record cost shipper and store. `requests` gets the
-- three columns that they need and it did not have, and `spans_derived`: rows of before do not have it, and keep the
-- spans that are stored for them until these expire. So do the rows that shippers of the release before go on to insert,
-- while they store spans. Readers of that release find no spans of rows that have the column, and show such requests by
-- themselves.
-- All statements change metadata alone, and can run again. The columns come before the view that fills them.
-- Reverse: give the view its former query; columns and index can be dropped.
ALTER TABLE requests
    ADD COLUMN IF NOT EXISTS trace_id String,
    ADD COLUMN IF NOT EXISTS parent_span_id String,
    ADD COLUMN IF NOT EXISTS prompt_name LowCardinality(String),
    ADD COLUMN IF NOT EXISTS spans_derived Bool,
    ADD INDEX IF NOT EXISTS i_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1;

ALTER TABLE ingest
    ADD COLUMN IF NOT EXISTS trace_id String,
    ADD COLUMN IF NOT EXISTS parent_span_id String,
    ADD COLUMN IF NOT EXISTS prompt_name LowCardinality(String),
    ADD COLUMN IF NOT EXISTS spans_derived Bool;

ALTER TABLE requests_mv MODIFY QUERY
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;
