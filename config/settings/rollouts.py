"""Rollouts: when a minute counts as closed."""

from __future__ import annotations

from config import env

# From the end of a minute, by the clock of the evaluating host, until it is judged. Which rows of it can be read, the
# store itself says: this is for clocks that are set back. Rollouts under the first formula wait for 120 s at least.
ROLLOUT_EVALUATION_LAG_SECONDS = env.integer("ROLLOUT_EVALUATION_LAG_SECONDS", 10, minimum=0, maximum=3600)
