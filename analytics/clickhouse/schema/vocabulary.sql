-- A search asks for parts of words, so that this table has each word of a project's texts once a week of expiry, how
-- often it is in them, and the day on which the last of them expires. The count is for the erasure of texts, which
-- subtracts theirs: a row that is 0 after a merge says of no text that it has the word. A word that stays too long costs a
-- look-up; a missing one would hide texts. The empty word stands for those of more than 48 bytes.
-- A word has no row any more when the last text of the project with it has been erased: the erasure subtracts the words
-- of its texts, merges the weeks in which some count 0 then, and removes those before it says that it is done. What the
-- server could not merge then goes in the night. Words of texts that expire by tomorrow go with the day of expiry.
-- A server without text indexes has an empty vocabulary, and searches read the newest texts.
CREATE TABLE IF NOT EXISTS vocabulary (
    project_id UUID, word String, week Date, occurrences Int64,
    drop_date SimpleAggregateFunction(max, Date)$part_index
) ENGINE = SummingMergeTree PARTITION BY week ORDER BY (project_id, word)
TTL drop_date
SETTINGS index_granularity = 512, ttl_only_drop_parts = 0, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS vocabulary_mv TO vocabulary AS
SELECT project_id, $word AS word, toMonday(expires) AS week, count() AS occurrences, max(expires) AS drop_date
FROM (
    SELECT
        i.project_id AS project_id, toDate(i.ts, 'UTC') + least(i.retention_days, 90) AS expires, $words AS words
    FROM ingest AS i WHERE i.request != '' OR i.response != ''
) ARRAY JOIN words AS any_word
GROUP BY project_id, word, week;
