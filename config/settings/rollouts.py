"""Rollouts: when a minute counts as closed."""

from __future__ import annotations

from config import env

# From the end of a minute until its requests are taken to be in the request log. What comes later is not judged.
ROLLOUT_EVALUATION_LAG_SECONDS = env.integer("ROLLOUT_EVALUATION_LAG_SECONDS", 120, minimum=0, maximum=3600)
