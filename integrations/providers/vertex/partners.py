"""Other publishers' dialects at Vertex AI: the adapter of the publisher's own provider at another address."""

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
from integrations.providers.vertex.publishers import PublisherModel

PROVIDER = "google_vertex"
_DATE = re.compile(r"-(\d{8})$")


@dataclass(frozen=True, slots=True)
class Partner:
    """`adapter` writes the body and reads the answer; its addresses and secrets are unused, and of its headers only
    those in `headers` are sent. `path` returns the path behind the location, for a whole answer or a stream; `named`
    returns the model's name for the adapter."""

    adapter: Adapter
    path: Callable[[PublisherModel, bool], str]
    named: Callable[[PublisherModel], str]
    headers: tuple[str, ...] = ()


def raw_predict(model: PublisherModel, stream: bool) -> str:
    """https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.publishers.models/rawPredict"""
    method = "streamRawPredict" if stream else "rawPredict"
    return f"publishers/{quote(model.publisher, safe='')}/models/{quote(model.model, safe='@')}:{method}"


# Google itself runs the models of every publisher without a dialect of its own there:
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
# The address has the version behind the name (`mistral-large@2407`) and the body has not:
# https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/mistral
_MISTRAL = Partner(
    MistralAdapter(replace(MISTRAL, provider=PROVIDER)),
    path=raw_predict,
    named=lambda model: model.model.partition("@")[0],
)

# The name has a date behind `@`:
# https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
_CLAUDE = Partner(
    ON_VERTEX,
    path=lambda model, stream: raw_predict(model._replace(model=_DATE.sub(r"@\1", model.model)), stream),
    named=lambda model: model.model,
    headers=("anthropic-beta",),
)

PARTNERS: Mapping[str, Partner] = {"anthropic": _CLAUDE, "mistralai": _MISTRAL}
# The gateway has no adapter for the dialect of AI21 at Vertex AI.
_UNSUPPORTED_PUBLISHERS = frozenset({"ai21"})


def partner_of(model: PublisherModel) -> Partner:
    """Raises ProviderError(NOT_FOUND) for a publisher whose dialect the gateway lacks, UnsupportedParameterError for an
    invalid name."""
    if not model.model.strip(" ."):
        raise UnsupportedParameterError("model", "the name is empty", provider=PROVIDER)
    if model.publisher in _UNSUPPORTED_PUBLISHERS:
        raise ProviderError(
            f"models of {model.publisher!r} cannot be called through {PROVIDER}",
            kind=FailureKind.NOT_FOUND,
            provider=PROVIDER,
        )
    return PARTNERS.get(model.publisher, OPEN_MODELS)
