"""Managed prompts, feedback and scores of Prompt Gateway, for applications. Needs the standard library alone."""

from __future__ import annotations

from prompt_gateway_client.client import AsyncPromptGateway, PromptGateway
from prompt_gateway_client.command.outcome import Outcome
from prompt_gateway_client.errors import PromptGatewayError, UnavailableError
from prompt_gateway_client.evaluation import EvaluationItem
from prompt_gateway_client.prompt import Message, Prompt

__all__ = [
    "AsyncPromptGateway", "EvaluationItem", "Message", "Outcome", "Prompt", "PromptGateway", "PromptGatewayError",
    "UnavailableError",
]  # fmt: skip
