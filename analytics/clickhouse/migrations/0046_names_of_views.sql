-- Views whose query was changed (0036, 0042) are renamed and get their names back. A table that a view feeds knows a batch
-- by the token of its insert and by the view, which the server calls by its name; but from MODIFY QUERY until the
-- server's next start it calls it by its UUID, so that a batch which was sent again after that start was stored twice.
-- A view that is renamed is called by its name at once (seen with 26.9). `ingest` and `anonymised` are away meanwhile, so
-- that no batch is stored under another name. Every statement can run again.
-- Reverse: nothing to do.
RENAME TABLE IF EXISTS ingest TO ingest_closed;

RENAME TABLE IF EXISTS anonymised TO anonymised_closed;

RENAME TABLE IF EXISTS requests_mv TO requests_mv_renamed;

RENAME TABLE IF EXISTS requests_mv_renamed TO requests_mv;

RENAME TABLE IF EXISTS anonymised_requests_mv TO anonymised_requests_mv_renamed;

RENAME TABLE IF EXISTS anonymised_requests_mv_renamed TO anonymised_requests_mv;

RENAME TABLE IF EXISTS request_kinds_mv TO request_kinds_mv_renamed;

RENAME TABLE IF EXISTS request_kinds_mv_renamed TO request_kinds_mv;

RENAME TABLE IF EXISTS requests_minute_mv TO requests_minute_mv_renamed;

RENAME TABLE IF EXISTS requests_minute_mv_renamed TO requests_minute_mv;

RENAME TABLE IF EXISTS requests_hourly_mv TO requests_hourly_mv_renamed;

RENAME TABLE IF EXISTS requests_hourly_mv_renamed TO requests_hourly_mv;

RENAME TABLE IF EXISTS requests_daily_mv TO requests_daily_mv_renamed;

RENAME TABLE IF EXISTS requests_daily_mv_renamed TO requests_daily_mv;

RENAME TABLE IF EXISTS errors_daily_mv TO errors_daily_mv_renamed;

RENAME TABLE IF EXISTS errors_daily_mv_renamed TO errors_daily_mv;

RENAME TABLE IF EXISTS session_days_mv TO session_days_mv_renamed;

RENAME TABLE IF EXISTS session_days_mv_renamed TO session_days_mv;

RENAME TABLE IF EXISTS users_daily_mv TO users_daily_mv_renamed;

RENAME TABLE IF EXISTS users_daily_mv_renamed TO users_daily_mv;

RENAME TABLE IF EXISTS anonymised_users_mv TO anonymised_users_mv_renamed;

RENAME TABLE IF EXISTS anonymised_users_mv_renamed TO anonymised_users_mv;

RENAME TABLE IF EXISTS users_hourly_mv TO users_hourly_mv_renamed;

RENAME TABLE IF EXISTS users_hourly_mv_renamed TO users_hourly_mv;

RENAME TABLE IF EXISTS anonymised_user_hours_mv TO anonymised_user_hours_mv_renamed;

RENAME TABLE IF EXISTS anonymised_user_hours_mv_renamed TO anonymised_user_hours_mv;

RENAME TABLE IF EXISTS anonymised_closed TO anonymised;

RENAME TABLE IF EXISTS ingest_closed TO ingest;
