"""The models of a provider whose own list is unknown: those that the shipped catalogs name, by their names in requests.
Catalogs also name regions, tiers and other interfaces of a provider, which cannot be called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from integrations.capabilities.lookup import listed_names
from integrations.capabilities.shipped import without_region
from integrations.providers.base import Credentials
from integrations.sandbox.behaviours import BEHAVIOURS

_SANDBOX, _BEDROCK = "sandbox", "bedrock"
# The names with a slash are those of a region or of another interface.
_PLAIN_NAMES = frozenset({"azure_openai", "azure_anthropic", "openai", "anthropic", "perplexity", _BEDROCK})
# An inference profile is called in the regions that its prefix stands for:
# https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html
_PROFILES = (
    ("us-gov-", ("us-gov.",)),
    ("us-", ("us.", "global.")),
    ("ca-", ("ca.", "us.", "global.")),
    ("eu-", ("eu.", "global.")),
    ("ap-northeast-1", ("jp.", "apac.", "global.")),
    ("ap-northeast-3", ("jp.", "apac.", "global.")),
    ("ap-southeast-2", ("au.", "apac.", "global.")),
    ("ap-southeast-4", ("au.", "apac.", "global.")),
    ("ap-", ("apac.", "global.")),
    ("", ("global.",)),
)


def catalog_names(credentials: Credentials, priced: Iterable[str]) -> tuple[str, ...]:
    """Returns the names in alphabetical order. `priced` are the provider's names that have a price.

    A deployment that the integration names answers every model name, so it is the only result.
    """
    if credentials.provider == _SANDBOX:
        return tuple(name for name, behaviour in BEHAVIOURS.items() if behaviour.answers)
    deployment = credentials.extra.get("deployment")
    if deployment:
        return (deployment,)
    return _names(credentials.provider, credentials.extra.get("region", ""), priced)


def _names(provider: str, region: str, priced: Iterable[str]) -> tuple[str, ...]:
    found = {name for name in (*priced, *listed_names(provider)) if _is_name(provider, name)}
    return tuple(sorted(_in_region(found, region) if provider == _BEDROCK else found))


def _is_name(provider: str, name: str) -> bool:
    # A name that ends in `*` is the price of all models, one that begins with `ft:` that of models to be tuned.
    if name.endswith("*") or name.startswith("ft:"):
        return False
    return "/" not in name or provider not in _PLAIN_NAMES


def _in_region(names: set[str], region: str) -> Iterator[str]:
    prefixes = next(found for start, found in _PROFILES if region.startswith(start))
    profiled = {without_region(name) for name in names if without_region(name) != name}
    for name in names:
        if name.startswith(prefixes) if without_region(name) != name else "." in name and name not in profiled:
            yield name
