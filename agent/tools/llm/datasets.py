from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Toolbox, ToolContext
from agent.tools.llm.scope import SCOPE
from agent.tools.pages import PageArguments, listed, page_of
from analytics.datasets.selectors import get_dataset
from analytics.presenters import datasets

TOOLS = Toolbox(SCOPE)


class ListDatasetItems(PageArguments, kw_only=True, frozen=True):
    dataset_id: Annotated[UUID, Meta(description="Id of a data set, as list_datasets tells it.")]
    version: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None, Meta(description="A version; the latest if it is left out.")
    ] = None
    tag: Annotated[Annotated[str, Meta(max_length=50)] | None, Meta(description="Only items with this tag.")] = None


@TOOLS.tool("Data sets")
def list_datasets(context: ToolContext, arguments: PageArguments) -> dict[str, Any]:
    """Data sets for experiments, the last changed first: their version, how many items they have, how long these are
    kept, and how many are gone."""
    page = page_of(arguments)
    return listed(datasets.datasets(context.project_id, page), page)


@TOOLS.tool("Items of a data set")
def list_dataset_items(context: ToolContext, arguments: ListDatasetItems) -> dict[str, Any]:
    """The items of a version of a data set: messages, variables, what is expected, tags, and the request that each was
    made of."""
    page, dataset = page_of(arguments), get_dataset(context.project_id, arguments.dataset_id)
    return listed(datasets.items(dataset, page, version=arguments.version, tag=arguments.tag or ""), page)
