"""The embedded ClickHouse: a process that opens chDB on a directory and serves it over ClickHouse's native protocol.

Only `chdb_connection` imports chDB, and only inside this process: it starts threads on import and may never be forked.
"""
