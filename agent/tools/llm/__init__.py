from __future__ import annotations

from agent.tools.base import Tool
from agent.tools.llm import (
    datasets,
    evaluators,
    experiments,
    models,
    online_evaluations,
    prompts,
    requests,
    reviews,
    rollouts,
    scores,
    sessions,
)

TOOLS: tuple[Tool, ...] = (
    *sessions.TOOLS,
    *requests.TOOLS,
    *scores.TOOLS,
    *reviews.TOOLS,
    *evaluators.TOOLS,
    *online_evaluations.TOOLS,
    *datasets.TOOLS,
    *experiments.TOOLS,
    *prompts.TOOLS,
    *rollouts.TOOLS,
    *models.TOOLS,
)
