from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agent.tools.base import Arguments, Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, chosen, filtered, listed, listed_rows, page_of
from core.errors import NotFoundError
from core.wire.pagination import Listing
from gateway.protocol.model_prefixes import model_prefixes
from integrations.errors import PriceNotFoundError
from integrations.pricing.entries import MODEL_LENGTH
from integrations.pricing.filters import PriceFilter
from integrations.pricing.selectors import applied_price, project_prices
from integrations.pricing.serializers import PriceSerializer
from integrations.registry import is_known
from integrations.selectors import enabled_credentials

_PROVIDER_CHARACTERS = 50


TOOLS = Toolbox(SCOPE)


class ListModels(PageArguments, kw_only=True, frozen=True):
    enabled_only: Annotated[bool, Meta(description="Whether to leave out what no enabled provider serves.")] = True


class ListPrices(PageArguments, kw_only=True, frozen=True):
    search: Annotated[str, Meta(max_length=200, description="Only with this text in model or provider.")] = ""
    provider: Annotated[
        str, Meta(max_length=_PROVIDER_CHARACTERS, description="Only of this provider, e.g. anthropic.")
    ] = ""
    source: Annotated[
        Literal["catalog_a", "catalog_b", "manual", "sandbox"] | None,
        Meta(description="Only from this catalog, or only those set by hand (manual)."),
    ] = None


class OnePrice(Arguments, kw_only=True, frozen=True):
    provider: Annotated[str, Meta(min_length=1, max_length=_PROVIDER_CHARACTERS, description="E.g. openai.")]
    model: Annotated[str, Meta(min_length=1, max_length=MODEL_LENGTH, description="Name of the model.")]


@TOOLS.tool("Models")
def list_models(context: ToolContext, arguments: ListModels) -> dict[str, Any]:
    """The prefixes of model names that the gateway routes, with the provider each belongs to and whether the project
    has it enabled. What models were really used: list_model_metrics."""
    providers = {credentials.provider for credentials in enabled_credentials(context.project_id)}
    found = [entry for entry in model_prefixes(providers) if entry["enabled"] or not arguments.enabled_only]
    page = page_of(arguments)
    return listed(Listing(len(found), page.of(found)), page)


@TOOLS.tool("Prices")
def list_prices(context: ToolContext, arguments: ListPrices) -> dict[str, Any]:
    """Prices of models in US dollars per 1,000,000 tokens: input, output, cache read and cache write, as decimal text;
    by provider and model. A price set by hand for the project replaces the catalogs' one."""
    prices = project_prices(context.project_id)
    if arguments.provider:
        if not is_known(arguments.provider):
            raise NotFoundError("There is no such provider.", code="provider_not_found")
        prices = prices.filter(provider=arguments.provider)
    rows = filtered(PriceFilter, chosen(arguments, ["search", "source"]), prices)
    return listed_rows(rows, PriceSerializer, arguments)


@TOOLS.tool("Price of a model")
def get_price(context: ToolContext, arguments: OnePrice) -> dict[str, Any]:
    """The price that requests for one model are counted by, in US dollars per 1,000,000 tokens; a name with a date may
    be priced by the entry without it."""
    known = is_known(arguments.provider)
    row = applied_price(context.project_id, arguments.provider, arguments.model) if known else None
    if row is None:
        raise PriceNotFoundError("No price of this model is known.")
    return dict(PriceSerializer(row).data)
