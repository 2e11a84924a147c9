-- Every question opens every part of its range, and looks into the indexes of each. What is written no more comes
-- together in one part: a partition none of whose parts is younger than two hours (a day for texts, which are large).
-- By itself the server leaves five to ten parts in each, however old. The partition that is being written is left
-- alone, so this writes a busy store's rows once more in their lives.
-- Reverse: min_age_to_force_merge_seconds = 0.
ALTER TABLE requests MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE requests_minute MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE requests_hourly MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE requests_daily MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE users_daily MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE session_days MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE errors_daily MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE user_sessions MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE request_kinds MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE otel_session_spans MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE otel_session_logs MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE otel_traces MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE otel_logs MODIFY SETTING min_age_to_force_merge_seconds = 7200, min_age_to_force_merge_on_partition_only = 1;
ALTER TABLE payloads MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;
