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
    "azure_anthropic": "integrations.providers.anthropic.foundry:ADAPTER",
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
    the provider; empty where the project has nothing to choose among them."""

    provider: str
    upstream_model: str
    deployment: str = ""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A family of models: those whose name starts with `prefix` come from `owned_by` and are served by `providers`, the
    first one preferred."""

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


def _own_prefixes() -> Iterator[Prefix]:
    """Yields those of the rows of OpenAI's dialect, where a vendor may have several."""
    serving: dict[str, list[Dialect]] = {}
    for row in DIALECTS:
        for prefix in row.prefixes:
            serving.setdefault(prefix, []).append(row)
    for prefix, rows in serving.items():
        names = (*(row.provider for row in rows), *_ALSO_AT.get(prefix, ()))
        yield Prefix(prefix, rows[0].owned_by or rows[0].provider, names)


# The longest matching prefix counts, so the order here only helps readers.
PREFIXES = (
    Prefix("gpt-", "openai", _OPENAI),
    Prefix("chatgpt-", "openai", _OPENAI),
    Prefix("o1", "openai", _OPENAI),
    Prefix("o3", "openai", _OPENAI),
    Prefix("o4", "openai", _OPENAI),
    Prefix("codex-", "openai", _OPENAI),
    Prefix("computer-use-", "openai", _OPENAI),
    Prefix("ft:", "openai", ("openai",)),
    Prefix("gpt-oss-", "openai", ("cerebras", "groq", "ollama", "sambanova", "ovhcloud")),
    Prefix("gpt-oss:", "openai", ("ollama",)),
    Prefix("omni-moderation-", "openai", ("openai",)),
    Prefix("gpt-image-", "openai", _OPENAI),
    Prefix("dall-e-", "openai", _OPENAI),
    Prefix("tts-", "openai", _OPENAI),
    Prefix("whisper-", "openai", (*_OPENAI, "groq")),
    Prefix("babbage-", "openai", ("openai",)),
    Prefix("davinci-", "openai", ("openai",)),
    Prefix("text-embedding-3-", "openai", _OPENAI),
    Prefix("text-embedding-ada-", "openai", _OPENAI),
    Prefix("claude-", "anthropic", ("anthropic", "azure_anthropic")),
    Prefix("gemini-", "google", _GOOGLE),
    Prefix("gemma-", "google", _GOOGLE),
    Prefix("text-embedding-00", "google", ("google_vertex",)),
    Prefix("text-multilingual-embedding-", "google", ("google_vertex",)),
    Prefix("learnlm-", "google", _GOOGLE),
    Prefix("command-", "cohere", ("cohere",)),
    Prefix("rerank-", "cohere", ("cohere",)),
    Prefix("embed-", "cohere", ("cohere",)),
    Prefix("c4ai-", "cohere", ("cohere",)),
    *_own_prefixes(),
    Prefix("mistral-", "mistralai", ("mistral",)),
    Prefix("ministral-", "mistralai", ("mistral",)),
    Prefix("magistral-", "mistralai", ("mistral",)),
    Prefix("codestral-", "mistralai", ("mistral",)),
    Prefix("devstral-", "mistralai", ("mistral",)),
    Prefix("pixtral-", "mistralai", ("mistral",)),
    Prefix("voxtral-", "mistralai", ("mistral",)),
    Prefix("open-mistral-", "mistralai", ("mistral",)),
    Prefix("open-mixtral-", "mistralai", ("mistral",)),
    Prefix("llama-3", "meta", ("groq", "cerebras")),
    Prefix("llama3", "meta", ("cerebras", "ollama")),
    Prefix("meta-llama/", "meta", _OPEN_WEIGHTS),
    Prefix("Llama-", "meta", ("meta_llama", "sambanova")),
    Prefix("Meta-Llama-", "meta", ("sambanova",)),
    Prefix("text-embedding-v", "alibaba", ("dashscope",)),
    Prefix("qwen-", "alibaba", ("dashscope", "cerebras")),
    Prefix("qwen2", "alibaba", ("dashscope",)),
    Prefix("qwen3", "alibaba", ("dashscope",)),
    Prefix("qwq-", "alibaba", ("dashscope",)),
    Prefix("qvq-", "alibaba", ("dashscope",)),
    Prefix("qwen/", "alibaba", ("groq", "openrouter")),
    Prefix("Qwen/", "alibaba", ("together", "huggingface")),
    Prefix("deepseek-ai/", "deepseek", ("together", "huggingface")),
    Prefix("moonshotai/", "moonshotai", ("groq", "together", "huggingface", "openrouter")),
    Prefix("zai-org/", "zai", ("together", "huggingface")),
    Prefix("accounts/fireworks/", "fireworks", ("fireworks",)),
    # Bedrock's ids have the form `vendor.model`, a cross-region profile `region.vendor.model`, or an ARN.
    Prefix("ai21.", "ai21", _BEDROCK),
    Prefix("amazon.", "amazon", _BEDROCK),
    Prefix("anthropic.", "anthropic", _BEDROCK),
    Prefix("cohere.", "cohere", _BEDROCK),
    Prefix("deepseek.", "deepseek", _BEDROCK),
    Prefix("google.", "google", _BEDROCK),
    Prefix("meta.", "meta", _BEDROCK),
    Prefix("minimax.", "minimax", _BEDROCK),
    Prefix("mistral.", "mistralai", _BEDROCK),
    Prefix("moonshot.", "moonshotai", _BEDROCK),
    Prefix("nvidia.", "nvidia", _BEDROCK),
    Prefix("openai.", "openai", _BEDROCK),
    Prefix("qwen.", "alibaba", _BEDROCK),
    Prefix("writer.", "writer", _BEDROCK),
    Prefix("zai.", "zai", _BEDROCK),
    Prefix("us.", "amazon", _BEDROCK),
    Prefix("us-gov.", "amazon", _BEDROCK),
    Prefix("eu.", "amazon", _BEDROCK),
    Prefix("apac.", "amazon", _BEDROCK),
    Prefix("jp.", "amazon", _BEDROCK),
    Prefix("au.", "amazon", _BEDROCK),
    Prefix("ca.", "amazon", _BEDROCK),
    Prefix("global.", "amazon", _BEDROCK),
    Prefix(_ARN, "amazon", _BEDROCK),
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
    """Returns the provider's adapter. Raises UnknownProviderError."""
    try:
        module_name, _, attribute = _ADAPTERS[provider].partition(":")
    except KeyError:
        raise UnknownProviderError(provider) from None
    found = getattr(import_module(module_name), attribute)
    adapter: Adapter = found[provider] if isinstance(found, dict) else found
    return adapter if adapter.traits.functions == "always" else with_functions(adapter)


def traits_of(provider: str) -> Traits:
    """Returns the provider's declared facts. Raises UnknownProviderError."""
    return adapter_for(provider).traits


def provider_title(provider: str) -> str:
    """Returns the name as the vendor writes it, `OpenAI` for `openai`; a name that is no provider's as it is."""
    return traits_of(provider).title if is_known(provider) else provider


@lru_cache(maxsize=256)
def provider_named(text: str) -> str:
    """Returns the provider that a person means by its name or title, whatever the case; empty for none."""
    wanted = text.strip().casefold()
    return next((name for name in _ADAPTERS if wanted in (name, provider_title(name).casefold())), "")


def default_model(provider: str) -> str:
    """Returns the model to fall back to at a provider that does not serve the requested one; empty when none is
    declared."""
    return traits_of(provider).default_model


def supported_prefixes() -> tuple[Prefix, ...]:
    """Returns every prefix of a model name that the service routes, including those of the form `provider/`."""
    return PREFIXES + tuple(Prefix(f"{provider}/", provider, (provider,)) for provider in _ADAPTERS)


def owner_of(model: str) -> str:
    """Returns the provider that a name of the form `provider/model` belongs to, enabled or not; empty for any other
    name."""
    vendor, slash, _ = model.partition("/")
    return vendor if slash and vendor in _ADAPTERS else ""


def resolve(model: str, enabled: Collection[str], disabled: Collection[str] = ()) -> list[Candidate]:
    """Returns the enabled providers that may serve `model`, preferred first; an empty list when none does.

    The form `provider/model` names that provider alone: while it is not enabled, no provider serves the model.
    `disabled` are the providers that the project has set up and switched off: a model that one of their prefixes
    matches is not passed on to a provider of any model.
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
    """Returns the longest prefix that a name without a provider before it begins with; None without one."""
    matching = [row for row in PREFIXES if model.startswith(row.prefix)]
    return max(matching, key=lambda row: len(row.prefix)) if matching else None


def _named_by_prefix(model: str) -> tuple[str, ...]:
    row = prefix_of(model)
    return row.providers if row is not None else ()
