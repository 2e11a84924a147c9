from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from integrations.capabilities.shipped import Listed, entries, without_region
from integrations.pricing.lookup import spellings


@dataclass(frozen=True, slots=True)
class Capabilities:
    """None means that the catalogs have no entry. `context_window` and `max_output_tokens` count tokens. `documents`
    are PDF files, `schema` is an answer that follows a JSON schema, `parallel_tools` are several tool calls in one
    answer."""

    context_window: int | None = None
    max_output_tokens: int | None = None
    images: bool | None = None
    documents: bool | None = None
    audio: bool | None = None
    video: bool | None = None
    tools: bool | None = None
    parallel_tools: bool | None = None
    schema: bool | None = None
    reasoning: bool | None = None


@dataclass(frozen=True, slots=True)
class RequestNeeds:
    images: bool = False
    documents: bool = False
    audio: bool = False
    video: bool = False
    tools: bool = False
    schema: bool = False
    tokens: int = 0


# Each provider in this mapping serves another provider's models under the same names.
_SAME_MODELS = {"azure_openai": "openai", "azure_anthropic": "anthropic", "google_vertex": "google"}
# Resellers put the vendor's name before the model's: `anthropic/claude-…`, on Bedrock `anthropic.claude-…`.
_VENDORS = {
    "ai21": "",
    "anthropic": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "deepseek-ai": "deepseek",
    "google": "google",
    "mistral": "mistral",
    "mistralai": "mistral",
    "openai": "openai",
    "perplexity": "perplexity",
    "x-ai": "xai",
    "xai": "xai",
    "z-ai": "zai",
    "zai-org": "zai",
}
_FINE_TUNED = "ft:"
# Resellers put terms of their own behind a name, such as `:free`.
_VARIANT = re.compile(r":(?:free|beta|nitro|floor|extended|exacto|online)$")
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest)$")
# The pattern matches the ends of Bedrock's model ids: `-v1:0`, `-v2`, `:48k`.
_BEDROCK_VERSION = re.compile(r"(?:-v\d+)?(?::\d+k?)*$")


@lru_cache(maxsize=8192)
def capabilities_of(provider: str, model: str) -> Capabilities | None:
    table = _table()
    for place, name in _candidates(provider, model):
        models = table.get(place)
        if models is None:
            continue
        for spelling in spellings(name):
            listed = models.get(spelling)
            if listed is not None:
                return Capabilities(listed.context, listed.output, **listed.flags)
    return None


def listed_names(provider: str) -> Iterable[str]:
    return _table().get(provider, {}).keys()


def family_of(provider: str, model: str) -> str:
    """Returns a name that compares across providers: in lower case, without vendor, Bedrock's region and version, and
    release date."""
    name = model.rstrip("/")
    name = name.rpartition("models/")[2] if "models/" in name else name
    name = _bedrock(name.rpartition("/")[2])[-1][1] if provider == "bedrock" else name
    if not name.startswith(_FINE_TUNED):
        name = _VARIANT.sub("", name.rpartition("/")[2])
    # Clients may ask for any text as a model, of which nothing else may be left.
    return _DATE.sub("", name.lower()) or model.replace("/", "-").lower()


def max_output_of(provider: str, model: str) -> int | None:
    """Returns tokens, or None if neither catalog names the model.

    A model on Vertex AI may be named with its publisher (`anthropic/claude-…`), but is listed without it.
    """
    known = capabilities_of(provider, model.rpartition("/")[2] if provider == "google_vertex" else model)
    return known.max_output_tokens if known is not None else None


def can(provider: str, model: str, needs: RequestNeeds) -> bool:
    """Returns False only if the catalogs list a needed ability as missing; an unknown one counts as present."""
    known = capabilities_of(provider, model)
    if known is None:
        return True
    if known.context_window is not None and needs.tokens > known.context_window:
        return False
    abilities = (
        (needs.images, known.images),
        (needs.documents, known.documents),
        (needs.audio, known.audio),
        (needs.video, known.video),
        (needs.tools, known.tools),
        (needs.schema, known.schema),
    )
    return not any(needed and able is False for needed, able in abilities)


@cache
def _table() -> dict[str, dict[str, Listed]]:
    """Reads the table on first use: a worker without routing by capability never needs its 300 KB."""
    return entries()


def _candidates(provider: str, model: str) -> list[tuple[str, str]]:
    # A full resource name, such as `publishers/google/models/gemini-…` or
    # `arn:aws:bedrock:…:inference-profile/us.anthropic.…`, is cut to the model's own name.
    name = model.rpartition("models/")[2] if "models/" in model else model
    name = name.rpartition("/")[2] if name.startswith("arn:") else name
    found = [(provider, model), (provider, name)]
    if provider == "bedrock":
        found += _bedrock(name)
    if provider in _SAME_MODELS:
        found.append((_SAME_MODELS[provider], name))
    if provider == "google_vertex":
        found.append(("anthropic", name))
    vendor, slash, rest = name.partition("/")
    if slash and vendor.lower() in _VENDORS:
        found.append((_VENDORS[vendor.lower()], rest))
    return found


def _bedrock(name: str) -> list[tuple[str, str]]:
    name = without_region(name)
    base = _BEDROCK_VERSION.sub("", name)
    vendor, _, rest = base.partition(".")
    return [("bedrock", name), ("bedrock", base), (_VENDORS.get(vendor, ""), rest)]
