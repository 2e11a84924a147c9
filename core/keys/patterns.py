"""Patterns of the models and providers that an API key may call: `*` matches any characters, `?` one."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

MAX_PATTERNS = 50


@lru_cache(maxsize=20_000)
def permits(
    models: tuple[str, ...], providers: tuple[str, ...], provider: str, model: str, deployment: str = ""
) -> bool:
    """Returns whether the key's patterns allow `model` at `provider`; no patterns allow everything.

    A model matches by its name, with or without the provider in front. `deployment` is empty for one with its
    provider's name.
    """
    if providers and not any(_matches(pattern, provider, deployment or provider) for pattern in providers):
        return False
    names = (model, f"{provider}/{model}")
    return not models or any(fnmatchcase(name, pattern) for name in names for pattern in models)


def _matches(pattern: str, provider: str, deployment: str) -> bool:
    """Wildcards match within a provider's name only: `openai*` must not open a deployment of another provider called
    `openai-secret`. A deployment matches by its whole name, or by a pattern after the slash of `provider/deployment`.
    """
    of_provider, slash, of_deployment = pattern.partition("/")
    if slash:
        return fnmatchcase(provider, of_provider) and fnmatchcase(deployment, of_deployment)
    return fnmatchcase(provider, pattern) or deployment == pattern
