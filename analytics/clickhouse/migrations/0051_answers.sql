-- Two facts about answers that rollouts compare: whether another provider or model than the first choice answered, and
-- not just another deployment of it, and whether an answer to a managed prompt held neither text nor call.
-- The views read their sources by `*`, which the server reads once, so that both get their queries again; `ingest` and
-- `anonymised` are away meanwhile, and the views are renamed, as README.md says. Every statement can run again.
-- Reverse: drop the columns in the three tables, and give the views their queries again.
RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS anonymised_requests_mv_renamed TO anonymised_requests_mv;

ALTER TABLE requests ADD COLUMN IF NOT EXISTS other_used Bool, ADD COLUMN IF NOT EXISTS empty_answer Bool;

ALTER TABLE anonymised ADD COLUMN IF NOT EXISTS other_used Bool, ADD COLUMN IF NOT EXISTS empty_answer Bool;

ALTER TABLE ingest ADD COLUMN IF NOT EXISTS other_used Bool, ADD COLUMN IF NOT EXISTS empty_answer Bool;

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

RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS anonymised TO anonymised_closed;

RENAME TABLE IF EXISTS requests_mv TO requests_mv_renamed;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS anonymised_requests_mv TO anonymised_requests_mv_renamed;

RENAME TABLE IF EXISTS anonymised_requests_mv_renamed TO anonymised_requests_mv;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
