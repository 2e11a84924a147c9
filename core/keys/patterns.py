"""The models and providers that an API key may call, by patterns in which `*` stands for any characters and `?` for
one."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

MAX_PATTERNS = 50


@lru_cache(maxsize=20_000)
def permits(
    models: tuple[str, ...], providers: tuple[str, ...], provider: str, model: str, deployment: str = ""
) -> bool:
    """Returns whether a key with these patterns may call `model` at `provider`; no patterns permit everything. A model
    is matched by its own name and by its name with the provider before it. `deployment` is empty for a deployment that
    has its provider's name."""
    if providers and not any(_matches(pattern, provider, deployment or provider) for pattern in providers):
        return False
    names = (model, f"{provider}/{model}")
    return not models or any(fnmatchcase(name, pattern) for name in names for pattern in models)


def _matches(pattern: str, provider: str, deployment: str) -> bool:
    """Returns whether a pattern of providers matches. Its wildcards stand for characters of a provider's name alone:
    `openai*` must not open a deployment of another provider that somebody calls `openai-secret`. A deployment is
    matched by its whole name, or by a pattern behind the slash of `provider/deployment`."""
    of_provider, slash, of_deployment = pattern.partition("/")
    if slash:
        return fnmatchcase(provider, of_provider) and fnmatchcase(deployment, of_deployment)
    return fnmatchcase(provider, pattern) or deployment == pattern
