"""Rate limits and budgets: one atomic admission over all limits of a project, exact settlement (docs/limits.md).

`scripts/` holds what Redis runs, `connection` and `channel` the way there, `terms` what requests have in common,
`batch` what is asked in one turn of the loop, `limiter` the questions, `local` what holds while Redis is away,
`seeding` how spend gets back into a Redis that was lost.
"""
