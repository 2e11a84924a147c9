"""Django's PostgreSQL backend, which leaves a server that no longer takes writes."""
