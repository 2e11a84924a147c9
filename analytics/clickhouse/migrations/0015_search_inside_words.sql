-- Search finds parts of words, and words of scripts without spaces: other indexes on `payloads`. Their clauses are in
-- `analytics/clickhouse/text_index.py`. Rows stored before are searched without them until their indexes are built,
-- which 0018 does by writing every row again, and 0016 where 0018 has been.
-- A later migration that makes `payloads` anew has to take the clauses along: CREATE TABLE new AS payloads does.
-- Reverse: ALTER TABLE payloads DROP INDEX i_text, DROP INDEX i_unspaced; searches then read every text of a range.
$text_index_change;
