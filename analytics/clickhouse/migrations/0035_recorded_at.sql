-- When a request's row came into the store, by the store's clock: rollouts count it in that minute, however long the
-- request took or its record waited in a spool. Rows of before were recorded when their request ended, as far as anybody
-- knows; so are anonymised ones of the release before. An erased request keeps the time of the row it had.
-- The view has the time of its insert. A batch that is sent again is known by its token, not by its contents, and its
-- rows keep the time of the first.
-- Every statement can run again.
-- Reverse: give the view of `ingest` its former query, then drop the index and the columns.
ALTER TABLE requests
    ADD COLUMN IF NOT EXISTS recorded_at DateTime64(3, 'UTC') DEFAULT addMilliseconds(ts, latency_ms),
    ADD INDEX IF NOT EXISTS i_recorded recorded_at TYPE minmax GRANULARITY 1;

ALTER TABLE anonymised
    ADD COLUMN IF NOT EXISTS recorded_at DateTime64(3, 'UTC') DEFAULT addMilliseconds(ts, latency_ms) AFTER cost_source;

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
