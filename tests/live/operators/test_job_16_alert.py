"""Job 16: be told when requests fail: an alert set within four clicks, fired, and received."""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import Page, expect

from tests.gateway.alerts.receiver import TOKEN, Receiver, receiver_at
from tests.live.operators.conftest import signed_in
from tests.live.playground import make_account
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.waiting import TIMEOUT_SECONDS, eventually

# Alerts, New alert, the channel, Save alert.
_MAX_CLICKS = 4


async def test_job__alert_on_requests__is_set_fires_and_its_message_arrives(
    page: Page, live_service: LiveService
) -> None:
    team = Team(live_service, "shop")
    team.command("generate_traffic", "--project", team.project_id, "--requests", "300", "--days", "1")
    operator = await signed_in(page, team, make_account(team, "administrator"))
    main = operator.main
    Receiver.received.clear()
    with receiver_at() as address:
        await operator.open("/admin/alerts/channels/")
        await page.get_by_label("Name").fill("Team chat")
        await operator.choose(page.get_by_label("Kind"), "Slack, Mattermost or Discord")
        await page.get_by_label("Address of the webhook").fill(address)
        await operator.click(page.get_by_role("button", name="Save channel"))
        await expect(main.get_by_role("link", name="Team chat")).to_be_visible()
        assert TOKEN not in await page.content()

        await operator.open("/admin/")
        await operator.navigate("Alerts")
        await operator.click(main.get_by_role("link", name="New alert").first)
        await page.get_by_label("Name", exact=True).fill("Too many requests")
        await page.get_by_label("Figure").select_option(label="Requests")
        await page.get_by_label("Threshold").fill("10")
        await page.get_by_label("Over the last").select_option(label="7 days")
        await operator.click(page.get_by_label("Team chat"))
        await operator.click(page.get_by_role("button", name="Save alert"))
        await expect(main.get_by_text("It is looked at within half a minute.")).to_be_visible()
        assert operator.clicks <= _MAX_CLICKS

        [alert] = operator.api("alerts")["results"]
        events = f"alerts/{alert['id']}/events"
        await eventually(lambda: _is_delivered(operator.api(events)), seconds=2 * TIMEOUT_SECONDS)
        text = json.loads(Receiver.received[0][1])["text"]
        assert text.startswith("*Firing: Too many requests")
        assert "The alert fires above 10 over 7 days." in text
        await page.reload()
        await expect(main.get_by_text("firing", exact=True).first).to_be_visible()
        await expect(main.get_by_text("Team chat: delivered")).to_be_visible()

    alert = operator.api(f"alerts/{alert['id']}")
    assert (alert["state"], alert["channels"][0]["name"]) == ("firing", "Team chat")


def _is_delivered(events: dict[str, Any]) -> bool:
    return any(one["state"] == "delivered" for event in events["results"] for one in event["deliveries"])
