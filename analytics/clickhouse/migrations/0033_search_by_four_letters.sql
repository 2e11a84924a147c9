-- Search by every four characters instead of every three. A rare word of common pieces ("teiso": "tei", "eis" and "iso" are
-- each in many texts) left tens of thousands of texts to be read, 2.5 s of CPU among 4 million; four characters leave
-- about as many as match. Three are found by the fours that begin with them. The new lists of rows are packed: together
-- with an index of threes before characters beyond ASCII they take the space of the former.
-- The clauses are in `analytics/clickhouse/text_index.py`. What is stored gets its index before the former ones go: 330 s
-- of CPU for 4 million texts. What arrives meanwhile is indexed already. Every statement can run again.
-- Reverse: the former clauses with ADD INDEX and MATERIALIZE INDEX, then DROP INDEX i_letters, i_few_letters, i_ideographs.
-- Skipped when: SELECT countIf(name IN ('i_letters', 'i_few_letters', 'i_ideographs')) = 3 AND countIf(name IN ('i_text', 'i_unspaced')) = 0 FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'payloads'
$text_index_add;

$text_index_built;

$text_index_drop;
