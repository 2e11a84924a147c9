"""Rate limits and budgets: one atomic admission over all limits of a project, and exact settlement (docs/limits.md).

`scripts/` holds the Lua scripts; `connection`, of which `server` and `cluster` are the kinds, and `channel` run them,
`minute_limits` is the part that requests share, `batch` collects the requests of one turn of the event loop,
`allowances` are what a worker leases ahead, `limiter` admits and settles, `local` takes over while Redis is away,
`seeding` restores the spend of a Redis that was lost.
"""
