"""The models and providers that an API key may call, by patterns in which `*` stands for any characters and `?` for
one."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

MAX_PATTERNS, PATTERN_CHARACTERS = 50, 200


@lru_cache(maxsize=20_000)
def permits(
    models: tuple[str, ...], providers: tuple[str, ...], provider: str, model: str, deployment: str = ""
) -> bool:
    """Returns whether a key with these patterns may call `model` at `provider`; no patterns permit everything. A model
    is matched by its own name and by its name with the provider before it, a provider by its name and by that of the
    deployment."""
    places = (provider, deployment) if deployment else (provider,)
    if providers and not any(fnmatchcase(place, pattern) for place in places for pattern in providers):
        return False
    names = (model, f"{provider}/{model}")
    return not models or any(fnmatchcase(name, pattern) for name in names for pattern in models)
