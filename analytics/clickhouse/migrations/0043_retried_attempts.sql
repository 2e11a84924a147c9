-- The attempts of those requests that had more than one, for the history of providers and for failovers. One request in
-- eighty has, and lies in nearly every granule: with it the attempts of all others were read and decompressed. A week of
-- ten million requests took 103 ms of CPU without the column. It is computed from other columns when a row is inserted,
-- so that neither shippers nor views change, and those of the release before fill it as well. Rows of before get theirs
-- in the background; until then it is computed when they are read.
-- All statements can run again.
-- Reverse: drop the column.
ALTER TABLE requests
    ADD COLUMN IF NOT EXISTS retried_attempts String MATERIALIZED if(fallback_used OR retry_count > 0, attempts, '');

ALTER TABLE requests MATERIALIZE COLUMN retried_attempts;
