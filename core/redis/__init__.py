"""Redis as the product uses it: one server, a primary that Sentinels name, or a cluster."""
