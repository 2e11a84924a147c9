"""Job 4 beyond Home: the page of providers, one click away, says who is slow, who fails and who took over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.ui import formats
from integrations.registry import provider_title
from tests.live.operators.operator import Operator


async def test_job_4__providers__live_states_history_and_failovers(operator: Operator) -> None:
    await operator.navigate("Providers")

    live = operator.page.get_by_role("region", name="Now: the last five minutes").get_by_role("table").first
    await live.wait_for()
    shown = await live.inner_text()
    for provider in operator.api("metrics/provider-latency")["providers"]:
        assert provider_title(provider["provider"]) in shown
    assert "Calls" in shown

    past = {"start_date": (datetime.now(UTC) - timedelta(days=1)).isoformat()}
    history = operator.page.get_by_role("region", name="The last 24 hours")
    busiest = max(operator.api("metrics/providers/history", past)["providers"], key=lambda one: one["request_count"])
    await history.get_by_role("img", name=f"State of {provider_title(busiest['provider'])}").wait_for()

    failovers = operator.page.get_by_role("region", name="Failovers", exact=True)
    pair = operator.api("metrics/providers/failovers", past)["results"][0]
    await failovers.get_by_role("columnheader", name=f"to {provider_title(pair['to_provider'])}").wait_for()
    assert operator.clicks == 1


async def test_errors__most_frequent_kind__leads_to_its_requests(operator: Operator) -> None:
    await operator.navigate("Errors")
    past = {"start_date": (datetime.now(UTC) - timedelta(days=1)).isoformat()}
    group = operator.api("metrics/errors/groups", past)["results"][0]

    row = operator.page.get_by_role("region", name="By code, model and provider").get_by_role("row").nth(1)
    assert formats.number(group["error_count"]) in await row.inner_text()
    await operator.click(row.get_by_role("link", name=formats.number(group["error_count"]), exact=True))

    await operator.page.wait_for_url(f"**/admin/analytics/requests/**error_code={group['code']}**")
    assert operator.clicks == 2
