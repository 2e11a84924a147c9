-- The texts of requests are found by the words in them, and no more by every four characters in a row: that index took
-- more of what a record costs the store than all else, and more space than the texts. Quoted phrases of frequent words
-- are found by a second index, of the two characters on each side of where words meet. A third has every three characters
-- of words of more than 48 bytes, which is what no people write but base64 is.
-- `ingest` is away while the words of the past are filled in, so that none is counted twice. Searches use the indexes
-- once they are there, which is after that. Texts from before are indexed in the background, the parts of the table one
-- after the other: until then they are found as exactly, but read, and a search over many of them may be answered with
-- 503 `analytics_limit`. A server without text indexes gets an empty vocabulary, and searches read the newest texts.
-- Every statement can run again, because the table is emptied before it is filled.
-- A word has no row any more when the last text of the project with it has been erased: the erasure subtracts the words of
-- its texts, merges the weeks in which some count 0 then, and removes those before it says that it is done. What the
-- server could not merge then goes in the night. Words of texts that expire by tomorrow go with the day of expiry.
-- Reverse: drop the view, the table, i_words, i_long_words and i_word_pairs; add i_letters and i_few_letters to `payloads` as an
-- earlier release has them, and MATERIALIZE both. An earlier release reads the texts until then.
RENAME TABLE IF EXISTS ingest_closed TO ingest;

-- A search asks for parts of words, so that this table has each word of a project's texts once a week of expiry, how
-- often it is in them, and the day on which the last of them expires. The count is for the erasure of texts, which
-- subtracts theirs: a row that is 0 after a merge says of no text that it has the word. A word that stays too long costs a
-- look-up; a missing one would hide texts. The empty word stands for those of more than 48 bytes.
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

RENAME TABLE IF EXISTS ingest TO ingest_closed;

TRUNCATE TABLE vocabulary;

INSERT INTO vocabulary (project_id, word, week, occurrences, drop_date)
SELECT project_id, $word AS word, toMonday(expires) AS week, count() AS occurrences, max(expires) AS drop_date
FROM (SELECT p.project_id AS project_id, p.drop_date AS expires, $words AS words FROM payloads AS p)
ARRAY JOIN words AS any_word
GROUP BY project_id, word, week
SETTINGS max_threads = 2, max_execution_time = 0, insert_deduplicate = 0, max_partitions_per_insert_block = 0,
    max_block_size = 4096, max_bytes_before_external_group_by = 134217728;

RENAME TABLE IF EXISTS ingest_closed TO ingest;

ALTER TABLE payloads DROP INDEX IF EXISTS i_letters, DROP INDEX IF EXISTS i_few_letters$add_words;

ALTER TABLE payloads MATERIALIZE INDEX IF EXISTS i_words SETTINGS mutations_sync = 0, alter_sync = 0;

ALTER TABLE payloads MATERIALIZE INDEX IF EXISTS i_long_words SETTINGS mutations_sync = 0, alter_sync = 0;

ALTER TABLE payloads MATERIALIZE INDEX IF EXISTS i_word_pairs SETTINGS mutations_sync = 0, alter_sync = 0;
