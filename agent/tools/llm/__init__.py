"""Tools of the scope llm:read: sessions, requests, scores, evaluators, prompts, rollouts, models and prices."""

from __future__ import annotations

from agent.tools.base import Tool
from agent.tools.llm import datasets, evaluators, models, prompts, requests, reviews, rollouts, scores, sessions

TOOLS: tuple[Tool, ...] = (
    *sessions.TOOLS,
    *requests.TOOLS,
    *scores.TOOLS,
    *reviews.TOOLS,
    *evaluators.TOOLS,
    *datasets.TOOLS,
    *prompts.TOOLS,
    *rollouts.TOOLS,
    *models.TOOLS,
)
