"""Splits a request that is larger than the provider's maximum, for operations without chat completions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import cast

from gateway.pipeline.context import Attempt
from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.errors import ProviderError
from integrations.providers.native import OperationAdapter
from integrations.providers.usage import Usage

_MAX_AT_ONCE = 8


async def in_parts(
    request: ChatRequest, attempt: Attempt, call: Callable[[ChatRequest, Attempt], Awaitable[ParsedResponse]]
) -> ParsedResponse:
    """Returns the answer in the order of the inputs, whatever the number of calls.

    Raises ProviderError for the first call that fails, with the usage of the answered ones, which are billed. All other
    calls are cancelled.
    """
    adapter = cast(OperationAdapter, attempt.adapter)
    parts = adapter.parts(request)
    if len(parts) == 1:
        return adapter.joined(request, [await call(parts[0], attempt)])
    free = asyncio.Semaphore(_MAX_AT_ONCE)

    async def one(part: ChatRequest) -> ParsedResponse:
        async with free:
            return await call(part, attempt)

    tasks = [asyncio.ensure_future(one(part)) for part in parts]
    try:
        answers = await asyncio.gather(*tasks)
    except BaseException as failure:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(failure, ProviderError):
            failure.usage = _usage_of(tasks) or failure.usage
        raise
    return adapter.joined(request, answers)


def _usage_of(tasks: Sequence[asyncio.Future[ParsedResponse]]) -> Usage | None:
    answered = [task.result() for task in tasks if not task.cancelled() and task.exception() is None]
    usages = [answer.usage for answer in answered if answer.usage is not None]
    if not usages:
        return None
    costs = [usage.stated_cost for usage in usages if usage.stated_cost is not None]
    return Usage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        stated_cost=sum(costs, Decimal(0)) if costs else None,
        estimated=any(usage.estimated for usage in usages),
    )
