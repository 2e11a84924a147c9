-- Messages that several requests of a project have, each stored, split into words and indexed once: agents send their
-- whole history with each call. `payloads` names them in `shared`, in order; its own `request` lacks them after
-- `shared_at` characters, and its `prompt` begins behind them. The id is a hash of the content, so that a text may be
-- stored again at any time: by another host, by a shipper that has started, and for each day of expiry, because a text
-- lives as long as a request that has it, and no longer. Copies with the same day are one row after a merge. `completion`
-- is always empty: the expressions of the indexes are those of `payloads`. Granules of 16 rows, since a text has kilobytes.
-- `epoch` is the number of erasures of shared texts in the project, as the shipper knew it (`text_erasures`): an erasure
-- removes copies from before it, and a shipper that finds another number after it has stored requests stores their
-- texts again, so that no request that stays refers to a text that is gone (`analytics/shipper/shared_texts.py`).
-- Views that change take `ingest` away, as `tests/analytics/upgrades/9038_errors_by_operation.sql` says.
-- Reverse: stop the shippers of this version first; give the views their former queries.
CREATE TABLE IF NOT EXISTS shared_texts (
    project_id UUID, text_id UUID, epoch UInt32, drop_date Date,
    prompt String CODEC(ZSTD(3)) SETTINGS (min_compress_block_size = 8192), completion String,
    request String CODEC(ZSTD(3)),
    $text_indexes
) ENGINE = ReplacingMergeTree PARTITION BY toMonday(drop_date)
ORDER BY (project_id, text_id, drop_date, epoch) TTL drop_date
SETTINGS index_granularity = 16, non_replicated_deduplication_window = 10000,
    min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

CREATE TABLE IF NOT EXISTS text_erasures (
    project_id UUID, erased_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'), drop_date Date DEFAULT '2149-06-06'
) ENGINE = MergeTree PARTITION BY toYYYYMM(drop_date) ORDER BY (project_id, erased_at)
SETTINGS non_replicated_deduplication_window = 10000;

RENAME TABLE IF EXISTS ingest_closed TO ingest;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS payloads_mv_renamed TO payloads_mv;

RENAME TABLE IF EXISTS vocabulary_mv_renamed TO vocabulary_mv;

ALTER TABLE ingest
    ADD COLUMN IF NOT EXISTS shared Array(UUID), ADD COLUMN IF NOT EXISTS shared_at UInt32,
    ADD COLUMN IF NOT EXISTS shared_bytes UInt32, ADD COLUMN IF NOT EXISTS opening String;

ALTER TABLE payloads
    ADD COLUMN IF NOT EXISTS shared Array(UUID) CODEC(ZSTD(3)), ADD COLUMN IF NOT EXISTS shared_at UInt32,
    ADD COLUMN IF NOT EXISTS shared_bytes UInt32,
    ADD INDEX IF NOT EXISTS i_shared shared TYPE bloom_filter(0.001) GRANULARITY 16;

ALTER TABLE requests_mv MODIFY QUERY
SELECT
    * EXCEPT (
        prompt, completion, request, response, retention_days, shared, shared_at, shared_bytes, opening
    ),
    if(i.opening = '', substringUTF8(i.prompt, 1, 200), i.opening) AS prompt_preview,
    substringUTF8(i.completion, 1, 200) AS completion_preview,
    toDate(i.ts, 'UTC') + i.retention_days AS drop_date,
    now64(3, 'UTC') AS recorded_at
FROM ingest AS i;

ALTER TABLE payloads_mv MODIFY QUERY
SELECT
    project_id, ts, request_id, session_id, prompt, completion, request, response,
    toDate(i.ts, 'UTC') + least(i.retention_days, 90) AS drop_date, shared, shared_at, shared_bytes
FROM ingest AS i WHERE i.request != '' OR i.response != '';

-- Words are not counted any more. `occurrences` says nothing, but is so large that an erasure by a host of the version
-- before, which subtracts, does not make it 0. An erasure asks the indexes of texts whether another text has the word.
ALTER TABLE vocabulary_mv MODIFY QUERY
SELECT project_id, $word AS word, toMonday(expires) AS week, toInt64(1000000000) AS occurrences, expires AS drop_date
FROM (
    SELECT project_id, expires, groupUniqArrayArray($words) AS words
    FROM (
        SELECT
            i.project_id AS project_id, toDate(i.ts, 'UTC') + least(i.retention_days, 90) AS expires,
            i.prompt AS prompt, i.completion AS completion
        FROM ingest AS i WHERE i.request != '' OR i.response != ''
        GROUP BY project_id, expires, prompt, completion
    )
    GROUP BY project_id, expires
) ARRAY JOIN words AS any_word;

CREATE MATERIALIZED VIEW IF NOT EXISTS shared_words_mv TO vocabulary AS
SELECT project_id, $word AS word, toMonday(drop_date) AS week, toInt64(1000000000) AS occurrences, drop_date
FROM (
    SELECT s.project_id AS project_id, s.drop_date AS drop_date, groupUniqArrayArray($words) AS words
    FROM shared_texts AS s GROUP BY project_id, drop_date
) ARRAY JOIN words AS any_word;

RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS requests_mv TO requests_mv_renamed;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS payloads_mv TO payloads_mv_renamed;

RENAME TABLE IF EXISTS payloads_mv_renamed TO payloads_mv;

RENAME TABLE IF EXISTS vocabulary_mv TO vocabulary_mv_renamed;

RENAME TABLE IF EXISTS vocabulary_mv_renamed TO vocabulary_mv;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
