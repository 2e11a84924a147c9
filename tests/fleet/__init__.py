"""Tests against the servers of a fleet: Redis Sentinel and Cluster, PgBouncer, HAProxy. `make fleet` runs them."""
