"""Brings records from the spool into ClickHouse, each exactly once; `loop.Shipper` runs the steps in order."""
