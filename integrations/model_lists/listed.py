from __future__ import annotations

import msgspec


class ListedModel(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`id` is the name in a request to the provider; `created` is in seconds since 1970, 0 if the list has no time; the
    two counts are of tokens. `converses` is False if the list says that the model answers no conversation."""

    id: str
    name: str = ""
    created: int = 0
    context_window: int | None = None
    max_output_tokens: int | None = None
    converses: bool = True
