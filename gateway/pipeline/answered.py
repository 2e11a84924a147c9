from __future__ import annotations

import logging

from gateway.pipeline.context import RequestState
from integrations.pricing.answered import is_other_model

_log = logging.getLogger(__name__)
_MAX_KIND = 40


def note_answered(state: RequestState, model: str) -> None:
    """Lets the `model` that the answer names set the price and stand in the record, if its own price is known.

    This applies if it differs from the model that was asked, or if that one has no price. Kinds of tokens that the
    gateway does not know cost as much as the model's own, so that they never count as nothing.
    """
    routing, usage = state.routing, state.answer.usage
    if usage is not None and usage.parts:
        for kind in usage.unknown_kinds:
            shown = kind[:_MAX_KIND]
            _log.warning("usage.unknown_kind provider=%s model=%s kind=%r", routing.provider, model, shown)
            state.warnings += (f"usage: the kind of tokens {shown!r} is not known, its price is that of the model",)
    if model == routing.model or (routing.price is not None and not is_other_model(routing.model, model)):
        return
    price = state.price_of(model)
    if price is not None:
        routing.price, routing.answered = price, model
