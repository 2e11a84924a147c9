"""Redis as the product uses it: one server, a primary that Sentinels name, or a cluster.

`address` reads what REDIS_URL says, `clients` makes every client and connection, `cluster_map` knows which node of a
cluster holds a key, `subscription` listens to a channel, `failures` says in words why Redis does not answer, and
`checks` lists what its user must be allowed and finds what makes a Redis unfit.
"""
