"""Copies scores and feedback from the SQL database, where they are stored, to ClickHouse for the figures."""
