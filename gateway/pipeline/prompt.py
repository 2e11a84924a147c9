"""Stage 3: managed prompts. No project can own a prompt config yet, so naming one is always an error, never ignored."""

from __future__ import annotations

from gateway.errors import PromptConfigNotFoundError
from gateway.pipeline.context import RequestContext


def resolve_prompt(context: RequestContext) -> None:
    """Raises PromptConfigNotFoundError (404) when the request names a prompt config that the project does not have."""
    name = context.request.prompt_config or context.headers.prompt_config
    if name:
        raise PromptConfigNotFoundError(f"The project has no prompt config named {name!r}")
