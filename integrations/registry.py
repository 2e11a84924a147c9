"""Maps a provider's name to its adapter, and a model's name to the providers that may serve it. Adapters of dialects of
their own are imported on first use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module

from integrations.errors import UnknownProviderError
from integrations.providers.base import Adapter, Traits
from integrations.providers.openai.compatible import DIALECTS
from integrations.providers.openai.dialect import Dialect
from integrations.providers.openai.legacy_functions import with_functions

# An adapter's place has the form "module:attribute", where the attribute is an adapter or a mapping from provider names
# to adapters.
_COMPATIBLE = "integrations.providers.openai.compatible:ADAPTERS"
_ADAPTERS = {
    "openai": "integrations.providers.openai:ADAPTER",
    "azure_openai": "integrations.providers.openai.azure:ADAPTER",
    "anthropic": "integrations.providers.anthropic:ADAPTER",
    "azure_anthropic": "integrations.providers.anthropic.adapter:FOUNDRY",
    "google": "integrations.providers.google:GEMINI",
    "google_vertex": "integrations.providers.vertex:ADAPTER",
    "bedrock": "integrations.providers.bedrock:ADAPTER",
    "mistral": "integrations.providers.mistral:ADAPTER",
    "cohere": "integrations.providers.cohere:ADAPTER",
    **{dialect.provider: _COMPATIBLE for dialect in DIALECTS},
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A provider that may serve a model, and the model's name there. `deployment` names one of several integrations of
    the provider; empty if there is no choice."""

    provider: str
    upstream_model: str
    deployment: str = ""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Models whose name starts with `prefix` come from `owned_by` and are served by `providers`, the first one
    preferred."""

    prefix: str
    owned_by: str
    providers: tuple[str, ...]


_OPENAI = ("openai", "azure_openai")
_GOOGLE = ("google", "google_vertex")
_BEDROCK = ("bedrock",)
_ARN = "arn:aws"
_HOSTS = tuple(row.provider for row in sorted(DIALECTS, key=lambda row: row.host_rank) if row.host_rank)
_OPEN_WEIGHTS = ("groq", "cerebras", "together", "fireworks", "huggingface", "openrouter", *_HOSTS)

# Azure serves the models of this vendor, too.
_ALSO_AT: Mapping[str, tuple[str, ...]] = {"grok-": ("azure_openai",)}


def _family(owned_by: str, providers: tuple[str, ...], *prefixes: str) -> Iterator[Prefix]:
    return (Prefix(prefix, owned_by, providers) for prefix in prefixes)


def _own_prefixes() -> Iterator[Prefix]:
    serving: dict[str, list[Dialect]] = {}
    for row in DIALECTS:
        for prefix in row.prefixes:
            serving.setdefault(prefix, []).append(row)
    for prefix, rows in serving.items():
        names = (*(row.provider for row in rows), *_ALSO_AT.get(prefix, ()))
        yield Prefix(prefix, rows[0].owned_by or rows[0].provider, names)


# The longest matching prefix counts, so the order here only helps readers.
PREFIXES = (
    *_family("openai", _OPENAI, "gpt-", "chatgpt-", "o1", "o3", "o4", "codex-", "computer-use-"),
    *_family("openai", ("openai",), "ft:"),
    *_family("openai", ("cerebras", "groq", "ollama", "sambanova", "ovhcloud"), "gpt-oss-"),
    *_family("openai", ("ollama",), "gpt-oss:"),
    *_family("openai", ("openai",), "omni-moderation-"),
    *_family("openai", _OPENAI, "gpt-image-", "dall-e-", "tts-"),
    *_family("openai", (*_OPENAI, "groq"), "whisper-"),
    *_family("openai", ("openai",), "babbage-", "davinci-"),
    *_family("openai", _OPENAI, "text-embedding-3-", "text-embedding-ada-"),
    *_family("anthropic", ("anthropic", "azure_anthropic"), "claude-"),
    *_family("google", _GOOGLE, "gemini-", "gemma-"),
    *_family("google", ("google_vertex",), "text-embedding-00", "text-multilingual-embedding-"),
    *_family("google", _GOOGLE, "learnlm-"),
    *_family("cohere", ("cohere",), "command-", "rerank-", "embed-", "c4ai-"),
    *_own_prefixes(),
    *_family("mistralai", ("mistral",), "mistral-", "ministral-", "magistral-", "codestral-", "devstral-", "pixtral-"),
    *_family("mistralai", ("mistral",), "voxtral-", "open-mistral-", "open-mixtral-"),
    *_family("meta", ("groq", "cerebras"), "llama-3"),
    *_family("meta", ("cerebras", "ollama"), "llama3"),
    *_family("meta", _OPEN_WEIGHTS, "meta-llama/"),
    *_family("meta", ("meta_llama", "sambanova"), "Llama-"),
    *_family("meta", ("sambanova",), "Meta-Llama-"),
    *_family("alibaba", ("dashscope",), "text-embedding-v"),
    *_family("alibaba", ("dashscope", "cerebras"), "qwen-"),
    *_family("alibaba", ("dashscope",), "qwen2", "qwen3", "qwq-", "qvq-"),
    *_family("alibaba", ("groq", "openrouter"), "qwen/"),
    *_family("alibaba", ("together", "huggingface"), "Qwen/"),
    *_family("deepseek", ("together", "huggingface"), "deepseek-ai/"),
    *_family("moonshotai", ("groq", "together", "huggingface", "openrouter"), "moonshotai/"),
    *_family("zai", ("together", "huggingface"), "zai-org/"),
    *_family("fireworks", ("fireworks",), "accounts/fireworks/"),
    # Bedrock's ids have the form `vendor.model`, a cross-region profile `region.vendor.model`, or an ARN.
    *_family("ai21", _BEDROCK, "ai21."),
    *_family("amazon", _BEDROCK, "amazon."),
    *_family("anthropic", _BEDROCK, "anthropic."),
    *_family("cohere", _BEDROCK, "cohere."),
    *_family("deepseek", _BEDROCK, "deepseek."),
    *_family("google", _BEDROCK, "google."),
    *_family("meta", _BEDROCK, "meta."),
    *_family("minimax", _BEDROCK, "minimax."),
    *_family("mistralai", _BEDROCK, "mistral."),
    *_family("moonshotai", _BEDROCK, "moonshot."),
    *_family("nvidia", _BEDROCK, "nvidia."),
    *_family("openai", _BEDROCK, "openai."),
    *_family("alibaba", _BEDROCK, "qwen."),
    *_family("writer", _BEDROCK, "writer."),
    *_family("zai", _BEDROCK, "zai."),
    *_family("amazon", _BEDROCK, "us.", "us-gov.", "eu.", "apac.", "jp.", "au.", "ca.", "global.", _ARN),
)

# The catch-all providers serve any model that they were set up with, for names that no prefix matches or whose
# providers were never set up.
_CATCH_ALL = ("openai_compatible", "vllm", "ollama")
# Routers serve other vendors' models under `vendor/model`, where the gateway has no such vendor.
_ROUTERS = ("vercel_ai_gateway", "requesty", "poe", "github")
_AGGREGATORS = ("openrouter", "huggingface", "together", "groq", *_ROUTERS, *_HOSTS)
# The names of NVIDIA's own models begin with the provider's name: `nvidia/nemotron-…`, beside `meta/llama-…`.
_NAMED_LIKE_ITS_MODELS = "nvidia"


def providers() -> tuple[str, ...]:
    return tuple(_ADAPTERS)


def is_known(provider: str) -> bool:
    return provider in _ADAPTERS


@cache
def adapter_for(provider: str) -> Adapter:
    """Raises UnknownProviderError."""
    try:
        module_name, _, attribute = _ADAPTERS[provider].partition(":")
    except KeyError:
        raise UnknownProviderError(provider) from None
    found = getattr(import_module(module_name), attribute)
    adapter: Adapter = found[provider] if isinstance(found, dict) else found
    return adapter if adapter.traits.functions == "always" else with_functions(adapter)


def traits_of(provider: str) -> Traits:
    return adapter_for(provider).traits


def provider_title(provider: str) -> str:
    """Returns the name as the vendor writes it, `OpenAI` for `openai`; an unknown name unchanged."""
    return traits_of(provider).title if is_known(provider) else provider


@lru_cache(maxsize=256)
def provider_named(text: str) -> str:
    wanted = text.strip().casefold()
    return next((name for name in _ADAPTERS if wanted in (name, provider_title(name).casefold())), "")


def default_model(provider: str) -> str:
    return traits_of(provider).default_model


def supported_prefixes() -> tuple[Prefix, ...]:
    return PREFIXES + tuple(Prefix(f"{provider}/", provider, (provider,)) for provider in _ADAPTERS)


def owner_of(model: str) -> str:
    """Returns the provider in a name of the form `provider/model`, enabled or not; empty for any other name."""
    vendor, slash, _ = model.partition("/")
    return vendor if slash and vendor in _ADAPTERS else ""


def resolve(model: str, enabled: Collection[str], disabled: Collection[str] = ()) -> list[Candidate]:
    """Returns the enabled providers that may serve `model`, preferred first; an empty list if none does.

    The form `provider/model` names that provider alone: while it is not enabled, no provider serves the model.
    `disabled` are the providers that the project has switched off: a model that matches one of their prefixes is not
    passed on to a provider of any model.
    """
    return list(_resolve(model, frozenset(enabled), frozenset(disabled)))


@lru_cache(maxsize=8192)
def _resolve(model: str, enabled: frozenset[str], disabled: frozenset[str]) -> tuple[Candidate, ...]:
    owner = owner_of(model)
    if owner:
        name = model[len(owner) + 1 :]
        if name and owner == _NAMED_LIKE_ITS_MODELS and "/" not in name:
            name = model
        return (Candidate(owner, name),) if name and owner in enabled else ()
    claiming = _named_by_prefix(model)
    routing = _AGGREGATORS if "/" in model and not model.startswith(_ARN) else ()
    serving = [name for name in dict.fromkeys(claiming + routing) if name in enabled]
    if not serving and disabled.isdisjoint(claiming):
        serving = [name for name in _CATCH_ALL if name in enabled]
    return tuple(Candidate(name, model) for name in serving)


def prefix_of(model: str) -> Prefix | None:
    matching = [row for row in PREFIXES if model.startswith(row.prefix)]
    return max(matching, key=lambda row: len(row.prefix)) if matching else None


def _named_by_prefix(model: str) -> tuple[str, ...]:
    row = prefix_of(model)
    return row.providers if row is not None else ()
