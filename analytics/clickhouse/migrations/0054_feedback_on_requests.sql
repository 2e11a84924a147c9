-- Feedback may name the request whose answer it is about. A copy then has columns of that request, as copies of scores
-- have, with its time, source and outcome: how many of a version's answered requests were rated bad within a day is read
-- without a join with the log. `request_known` is false while the request is not in the store, and without one.
-- `request_drop_date` is the day on which the request leaves the log and the figures, from which on it is not counted
-- here either. Copies that are there already name no request. The statement can run again.
-- Reverse: drop the columns.
ALTER TABLE feedback
    ADD COLUMN IF NOT EXISTS request_id UUID,
    ADD COLUMN IF NOT EXISTS request_known Bool,
    ADD COLUMN IF NOT EXISTS request_ts DateTime64(6, 'UTC'),
    ADD COLUMN IF NOT EXISTS request_drop_date Date,
    ADD COLUMN IF NOT EXISTS source LowCardinality(String),
    ADD COLUMN IF NOT EXISTS outcome LowCardinality(String),
    ADD COLUMN IF NOT EXISTS provider LowCardinality(String),
    ADD COLUMN IF NOT EXISTS model LowCardinality(String),
    ADD COLUMN IF NOT EXISTS prompt_config_id UUID,
    ADD COLUMN IF NOT EXISTS prompt_version UInt32,
    ADD COLUMN IF NOT EXISTS rollout_id UUID,
    ADD COLUMN IF NOT EXISTS variant LowCardinality(String);
