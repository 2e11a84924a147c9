"""The dialects of other publishers at Vertex AI: each an adapter that its own provider has, at another address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from integrations.providers.anthropic import ON_VERTEX
from integrations.providers.base import Adapter
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from integrations.providers.mistral.adapter import MISTRAL, MistralAdapter
from integrations.providers.openai.adapter import OpenAIAdapter
from integrations.providers.openai.dialect import Dialect, Thinking
from integrations.providers.vertex.publishers import Published

PROVIDER = "google_vertex"
_DATE = re.compile(r"-(\d{8})$")


@dataclass(frozen=True, slots=True)
class Partner:
    """`adapter` writes the body and reads the answer; what it says of addresses and secrets does not count here but for
    `headers`, those of its own that go along. `path` is what stands behind the location, of a whole answer and of a
    stream; `named` is the model's name as the adapter gets it."""

    adapter: Adapter
    path: Callable[[Published, bool], str]
    named: Callable[[Published], str]
    headers: tuple[str, ...] = ()


def raw_predict(model: Published, stream: bool) -> str:
    """https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.publishers.models/rawPredict"""
    method = "streamRawPredict" if stream else "rawPredict"
    return f"publishers/{quote(model.publisher, safe='')}/models/{quote(model.model, safe='@')}:{method}"


# Models that Google runs itself, of every publisher that has no dialect of its own there:
# https://cloud.google.com/vertex-ai/generative-ai/docs/maas/call-open-model-apis. Levels of reasoning:
# https://cloud.google.com/vertex-ai/generative-ai/docs/maas/capabilities/thinking
OPEN_MODELS = Partner(
    OpenAIAdapter(
        Dialect(
            PROVIDER,
            "",
            thinking=Thinking.EFFORT,
            effort_models=("gpt-oss",),
            max_completion_tokens=False,
            parameters=frozenset({"top_k", "chat_template_kwargs", "extra_body"}),
        )
    ),
    path=lambda model, stream: "endpoints/openapi/chat/completions",
    named=lambda model: f"{model.publisher}/{model.model}",
)
# https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/mistral: the address has the version behind the
# name (`mistral-large@2407`), the body has not.
_MISTRAL = Partner(
    MistralAdapter(replace(MISTRAL, provider=PROVIDER)),
    path=raw_predict,
    named=lambda model: model.model.partition("@")[0],
)

# https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude; a date stands behind `@`.
_CLAUDE = Partner(
    ON_VERTEX,
    path=lambda model, stream: raw_predict(model._replace(model=_DATE.sub(r"@\1", model.model)), stream),
    named=lambda model: model.model,
    headers=("anthropic-beta",),
)

PARTNERS: Mapping[str, Partner] = {"anthropic": _CLAUDE, "mistralai": _MISTRAL}
# Publishers whose dialect nothing here speaks.
_UNSPOKEN = frozenset({"ai21"})


def partner_of(model: Published) -> Partner:
    """Raises ProviderError(NOT_FOUND) for a publisher whose models cannot be asked, UnsupportedParameterError for a
    name that is none."""
    if not model.model.strip(" ."):
        raise UnsupportedParameterError("model", "the name is empty", provider=PROVIDER)
    if model.publisher in _UNSPOKEN:
        raise ProviderError(
            f"models of {model.publisher!r} cannot be asked at {PROVIDER}",
            kind=FailureKind.NOT_FOUND,
            provider=PROVIDER,
        )
    return PARTNERS.get(model.publisher, OPEN_MODELS)
