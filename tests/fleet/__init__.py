"""Tests against the servers of a fleet: Redis Sentinel and Cluster, PgBouncer, HAProxy."""
