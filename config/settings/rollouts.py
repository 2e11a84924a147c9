from __future__ import annotations

from config import env

# The seconds from the end of a minute, by the evaluating host's clock, until it is evaluated. The store itself says
# which rows can be read; the delay covers clocks that are set back.
ROLLOUT_EVALUATION_LAG_SECONDS = env.integer("ROLLOUT_EVALUATION_LAG_SECONDS", 10, minimum=0, maximum=3600)
