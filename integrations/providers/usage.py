"""The token counts of an answer, in the form that every dialect is translated into."""

from __future__ import annotations

from decimal import Decimal

import msgspec

# Four bytes for each token is the usual rule of thumb for text; a tokenizer would block the event loop.
_BYTES_PER_TOKEN = 4


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The token counts of one answer, and what else decides on its price.

    `prompt_tokens` is the whole prompt, including cached and cache-written tokens, as OpenAI counts it; the four
    disjoint classes that are priced follow from it. `completion_tokens` includes `reasoning_tokens`. The fields
    `billed_…` are set if a provider charges for other counts than the model saw (Cohere); the price is then computed
    from them. `estimated` marks counts that the gateway guessed from bytes because the provider gave none; clients see
    the mark.

    The fields from `cache_write_1h_tokens` on serve the price alone. Each count is a part of the count that its name
    ends in: `cache_write_1h_tokens` (written for an hour) of `cache_write_tokens`, `audio_prompt_tokens` of
    `prompt_tokens`, `cache_read_audio_tokens` of `cache_read_tokens` and of `audio_prompt_tokens`. `searches` is the
    number of searches that the provider charges for, `search_context_size` is `low`, `medium` or `high`. `service_tier`
    is the tier that served the answer (`flex`, `priority`, `batch`…), empty for the standard tier. `stated_cost` is the
    cost in US dollars that the provider states; it takes precedence over every price.

    `parts` are the inferences that a vendor bills for one answer, in place of the counts above, which are those that it
    tells clients. `model` is the one that a part is billed as, empty for the model of the answer, and `unknown` its
    kind if the gateway does not know it.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    billed_prompt_tokens: int | None = None
    billed_completion_tokens: int | None = None
    cache_write_1h_tokens: int = 0
    audio_prompt_tokens: int = 0
    audio_completion_tokens: int = 0
    cache_read_audio_tokens: int = 0
    image_prompt_tokens: int = 0
    image_completion_tokens: int = 0
    searches: int = 0
    search_context_size: str = ""
    service_tier: str = ""
    stated_cost: Decimal | None = None
    estimated: bool = False
    parts: tuple[Usage, ...] = ()
    model: str = ""
    unknown: str = ""

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def is_billed(self) -> bool:
        return bool(self.prompt_tokens or self.completion_tokens or self.stated_cost)

    @property
    def in_all(self) -> Usage:
        parts = self.parts
        if not parts:
            return self
        return msgspec.structs.replace(
            self,
            prompt_tokens=sum(part.prompt_tokens for part in parts),
            completion_tokens=sum(part.completion_tokens for part in parts),
            cache_read_tokens=sum(part.cache_read_tokens for part in parts),
            cache_write_tokens=sum(part.cache_write_tokens for part in parts),
        )

    @property
    def unknown_kinds(self) -> list[str]:
        return sorted({part.unknown for part in self.parts if part.unknown and part.total_tokens})


def with_total(prompt: int, completion: int, total: int) -> tuple[int, int, bool]:
    """Prompt and completion tokens; one that is 0 is the rest of the total.

    If both are 0, the total counts as the prompt, and the third value is True.
    """
    left = total - prompt - completion
    if left <= 0 or (prompt and completion):
        return prompt, completion, False
    return (prompt, left, False) if prompt else (left, completion, not completion)


def estimated_tokens(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)
