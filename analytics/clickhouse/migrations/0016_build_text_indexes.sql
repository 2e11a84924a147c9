-- Builds the indexes of 0015 for the rows that are there, in the background. Not where 0018 is still to come.
-- Reverse: nothing to do.
-- Skipped when: SELECT count() = 1 FROM system.tables WHERE database = currentDatabase() AND name = 'payloads' AND partition_key != 'toMonday(drop_date)'
$text_index_build;
