-- The text indexes of fewer than four characters skip texts of ASCII alone, in which they find nothing: of 75 us that a
-- record of 2 KB of text cost the engine, 8 were their two regular expressions. Their tokens are the same as before. The
-- clauses are in `analytics/clickhouse/text_index.py`.
-- Rows of before get the indexes anew in the background (15 seconds of CPU for a million). Until then a search for three
-- characters, or for two of a script without spaces, reads the texts of those rows, and one over many of them may end
-- at its time limit. So do such searches of the release before for as long as it runs beside this one; the index of
-- four characters, which answers all others, is not touched.
-- All statements can run again; then the two indexes are made again.
-- Reverse: drop and add the two indexes with the expressions of that release.
-- Skipped when: SELECT count() = 0 FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'payloads' AND name = 'i_letters'
ALTER TABLE payloads
    $short_indexes;

ALTER TABLE payloads MATERIALIZE INDEX i_few_letters, MATERIALIZE INDEX i_ideographs;
