"""The way of records from the spool into ClickHouse, exactly once. `loop.Shipper` is the whole of it, in order."""
