"""Scores and feedback on their way from the SQL database, where they are kept, to ClickHouse for the figures."""
