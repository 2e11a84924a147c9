"""Job 6: edit a prompt, compare it, try it on past inputs, roll it out, watch it, stop it."""

from __future__ import annotations

import uuid
from contextlib import suppress

import openai
from playwright.async_api import expect

from tests.live.operators.operator import Operator
from tests.waiting import TIMEOUT_SECONDS, wait_until

MAX_CLICKS = 12
_INPUTS = 6


def _served(operator: Operator, name: str) -> tuple[str, int]:
    prompt = operator.team.prompt(
        name,
        {
            "system_prompt": "You help {{ user }}.\nAnswer in five sentences.",
            "variables": [{"name": "user", "type": "string", "required": True}],
        },
    )
    served: list[int] = []

    def is_served() -> bool:
        """Sends one more request, and returns whether the last of them was served. Workers learn of a prompt before its
        version, and until then answer without it."""
        with suppress(openai.NotFoundError):
            raw = client.chat.completions.with_raw_response.create(
                model="sandbox/mirror",
                messages=[{"role": "user", "content": f"Where is parcel {len(served)}?"}],
                extra_body={"prompt_config": name, "prompt_variables": {"user": "Ann"}},
            )
            if raw.headers.get("x-svc-prompt-version") == "1":
                served.append(len(served))
        return len(served) == _INPUTS

    with operator.team.client() as client:
        wait_until(is_served, what="requests with the prompt")
    found = {"prompt_config_id": prompt.config_id, "prompt_version": 1}
    wait_until(lambda: operator.api("requests", found)["count"] == _INPUTS, what="the requests in the log")
    return prompt.config_id, operator.api("requests", {"prompt_config_id": prompt.config_id})["count"]


async def test_job__prompt_edited_compared_tried_and_rolled_out__within_twelve_clicks(operator: Operator) -> None:
    name = f"support {uuid.uuid4().hex[:6]}"
    config_id, inputs = _served(operator, name)
    main = operator.main
    milliseconds = TIMEOUT_SECONDS * 1000

    # Edit: the variable that is typed gets a row, and the differences stand below.
    await operator.navigate("Prompts")
    await operator.click(main.get_by_role("link", name=name, exact=True).first)
    await operator.click(main.get_by_role("link", name="Edit as a new version"))
    await main.get_by_label("System prompt").fill("You help {{ user }} in {{ tone }}.\nAnswer in three sentences.")
    await expect(main.get_by_label("Name, variable 2")).to_have_value("tone", timeout=milliseconds)

    # Compare: with the active version, word by word, before anything is saved.
    differences = main.get_by_role("table", name="Lines of the prompt")
    await expect(differences.locator("del")).to_have_text(["five"])
    await expect(differences.locator("ins").last).to_have_text("three")
    await main.get_by_label("What changed").fill("Shorter")
    await operator.click(main.get_by_role("button", name="Save and try"))

    # Try: A is the active version, B the new one, and the inputs are those that this prompt was served for.
    await expect(main.get_by_label("Prompt version of A").locator("option:checked")).to_have_text(
        f"{name} version 1 (active)"
    )
    await expect(main.get_by_text(f"{inputs} items")).to_be_visible(timeout=milliseconds)
    await operator.click(main.get_by_role("button", name="Start", exact=True))
    await expect(main.get_by_text(f"{2 * inputs} of {2 * inputs} answers")).to_be_visible(timeout=milliseconds)
    await expect(main.locator("ins", has_text="three").first).to_be_visible(timeout=milliseconds)
    (experiment,) = (one for one in operator.api("experiments")["results"] if one["item_count"] == inputs)
    assert (experiment["state"], experiment["done_count"]) == ("completed", 2 * inputs)

    # Roll out, from the experiment.
    await operator.click(main.get_by_role("link", name="Roll out B"))
    await operator.click(main.get_by_role("button", name="Create and start"))

    # Watch, and stop.
    await expect(main.get_by_text("running").first).to_be_visible(timeout=milliseconds)
    (rollout,) = operator.api("prompts/rollouts", {"config_id": config_id})["results"]
    assert rollout["status"] == "running"
    await operator.click(main.get_by_text("Roll back", exact=True).first)
    confirmation = main.locator("details[open]", has=operator.page.get_by_role("button", name="Yes, roll back"))
    await confirmation.get_by_label("Reason").fill("Enough seen")
    await operator.click(confirmation.get_by_role("button", name="Yes, roll back"))
    await expect(main.get_by_text("rolled back").first).to_be_visible(timeout=milliseconds)
    assert operator.api(f"prompts/rollouts/{rollout['id']}")["status"] == "rolled_back"
    assert operator.clicks <= MAX_CLICKS
