"""The shipper brings records from the spool into ClickHouse, exactly once; `loop.Shipper` runs its steps in order."""
