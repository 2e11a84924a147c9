"""Rate limits and budgets: one atomic admission over all limits of a project, and exact settlement (docs/limits.md).

`limiter` admits and settles; `local` takes over while Redis is down; `seeding` restores the spend after Redis lost it.
`batch` collects the requests of one turn of the event loop; `allowances` are what a worker leases ahead;
`minute_limits` is the part that requests share. `scripts/` holds the Lua scripts, which `connection` (`server` or
`cluster`) and `channel` run.
"""
