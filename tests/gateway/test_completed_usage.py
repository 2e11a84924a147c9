"""Counts that a provider did not give are estimated and marked; those that it gave stay."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.uncounted import completed
from integrations.providers.usage import Usage

COUNTS = st.integers(0, 10**9)
SOME = st.integers(1, 10**9)


@given(prompt=COUNTS, completion=COUNTS, cost=st.none() | st.just(Decimal("0.5")), estimate=SOME, output=SOME)
def test_usage__of_an_answer_that_holds_something__no_zero_is_unmarked(
    prompt: int, completion: int, cost: Decimal | None, estimate: int, output: int
) -> None:
    usage = completed(Usage(prompt, completion, stated_cost=cost), estimate, output)

    assert usage.prompt_tokens == (prompt or estimate)
    assert usage.completion_tokens == (completion or -(-output // 4))
    assert usage.estimated is not bool(prompt and completion)
    assert usage.stated_cost == cost


@given(total=st.integers(2, 10**9), cached=COUNTS, estimate=SOME, output=SOME)
def test_usage__of_which_the_total_alone_is_known__divided_and_marked(
    total: int, cached: int, estimate: int, output: int
) -> None:
    stated = Usage(total, cache_read_tokens=min(cached, total), estimated=True)

    usage = completed(stated, estimate, output)

    assert usage.total_tokens == total
    assert min(usage.prompt_tokens, usage.completion_tokens) > 0
    assert usage.cache_read_tokens + usage.cache_write_tokens <= usage.prompt_tokens
    assert usage.estimated


@given(prompt=COUNTS, estimate=SOME)
def test_usage__of_an_empty_answer__as_stated(prompt: int, estimate: int) -> None:
    assert completed(Usage(prompt), estimate, 0) == Usage(prompt)
    assert completed(None, estimate, 0) == Usage(estimate, estimated=True)


@given(estimate=SOME, output=SOME)
def test_usage__billed_counts_of_zero__follow_the_estimate(estimate: int, output: int) -> None:
    usage = completed(Usage(7, 0, billed_prompt_tokens=5, billed_completion_tokens=0), estimate, output)

    assert (usage.billed_prompt_tokens, usage.billed_completion_tokens) == (5, None)
