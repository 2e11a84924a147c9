from __future__ import annotations

import msgspec

from core.keys.services import KeyRecord
from gateway.errors import ModelNotAllowedError
from gateway.pipeline.context import Attempt


def permitted(key: KeyRecord, model: str, attempts: list[Attempt]) -> list[Attempt]:
    """The first permitted attempt becomes the first choice. Raises ModelNotAllowedError (403) if there is none.

    A key may be restricted to some models and providers (docs/access-control.md#keys).
    """
    found = [attempt for attempt in attempts if key.permits(attempt.provider, attempt.model, attempt.deployment)]
    if not found:
        raise ModelNotAllowedError(f"This API key may not call {model!r}: its allowed models and providers exclude it")
    if found[0] is attempts[0]:
        return found
    first = found[0]
    return [
        msgspec.structs.replace(
            attempt,
            is_fallback=place > 0,
            is_other=(attempt.provider, attempt.model) != (first.provider, first.model),
            crosses_vendor=attempt.provider != first.provider,
        )
        for place, attempt in enumerate(found)
    ]
