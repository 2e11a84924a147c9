-- The name of the deployment that answered each request or was the last to fail; empty where the project had nothing to
-- choose among. It is a part of the attempts already: the column is computed from the last of them when a row is
-- inserted, so that neither shippers nor views change, and those of the release before fill it as well. Rows of before
-- compute it when they are read, until they expire. The statement changes metadata alone, however much the table holds,
-- and can run again.
-- Reverse: drop the column.
ALTER TABLE requests
    ADD COLUMN IF NOT EXISTS deployment LowCardinality(String) MATERIALIZED JSONExtractString(attempts, -1, 'deployment');
