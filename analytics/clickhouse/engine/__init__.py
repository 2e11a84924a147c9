"""The embedded ClickHouse: a process that opens chDB on a directory and serves it over ClickHouse's native protocol.

The protocol server is written by hand because chDB, which one process may open, has none, while web workers, the
shipper and Celery all send queries: a `SELECT 1` through driver, protocol and engine costs 1.5 ms of CPU
(docs/performance.md). It may go once chDB serves the protocol itself; installations with CLICKHOUSE_URL do not start
this process.

Only `chdb_connection` imports chDB, and only inside this process: it starts threads on import and may never be forked.
"""
