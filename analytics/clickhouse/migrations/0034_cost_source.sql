-- Where a request's cost came from, and what is charged beside tokens: fees, and what a provider states itself. Shippers of
-- the release before insert rows without the two columns, which then are empty.
-- Every statement can run again.
-- Reverse: give the two views their former queries, then drop the columns.
ALTER TABLE requests
    ADD COLUMN IF NOT EXISTS cost_other_usd Decimal(18, 10),
    ADD COLUMN IF NOT EXISTS cost_source LowCardinality(String);

ALTER TABLE ingest
    ADD COLUMN IF NOT EXISTS cost_other_usd Decimal(18, 10) AFTER cost_output_usd,
    ADD COLUMN IF NOT EXISTS cost_source LowCardinality(String) AFTER cost_usd;

ALTER TABLE anonymised
    ADD COLUMN IF NOT EXISTS cost_other_usd Decimal(18, 10) AFTER drop_date,
    ADD COLUMN IF NOT EXISTS cost_source LowCardinality(String) AFTER cost_other_usd;

ALTER TABLE requests_mv MODIFY QUERY
SELECT
    * EXCEPT (prompt, completion, request, response, retention_days),
    substringUTF8(i.prompt, 1, 200) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date
FROM ingest AS i;

ALTER TABLE anonymised_requests_mv MODIFY QUERY
SELECT * EXCEPT had_user FROM anonymised;
