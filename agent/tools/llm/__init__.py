"""Tools of the scope llm:read: sessions, requests, scores, prompts, rollouts, models and prices."""

from __future__ import annotations

from agent.tools.base import Tool
from agent.tools.llm import models, prompts, requests, reviews, rollouts, scores, sessions

TOOLS: tuple[Tool, ...] = (
    *sessions.TOOLS,
    *requests.TOOLS,
    *scores.TOOLS,
    *reviews.TOOLS,
    *prompts.TOOLS,
    *rollouts.TOOLS,
    *models.TOOLS,
)
