from __future__ import annotations

import asyncio

import pytest
from prompt_gateway_client import AsyncPromptGateway, PromptGateway

from tests.clients.applications.drivers import Driver, Refused, later
from tests.clients.applications.prompt_server import WRONG, PromptServer
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS, wait_until

AWAY = Refused("UnavailableError", 0, "")


def reads(server: PromptServer, count: int) -> bool:
    """Waits until the server was asked `count` times, and returns that it was not asked more."""
    return wait_until(lambda: len(server.received) >= count, what=f"{count} reads") and len(server.received) == count


def test_get__twice__is_one_read_with_all_fields(driver: Driver, server: PromptServer) -> None:
    found = driver.get()

    assert found == {**{name: value for name, value in server.prompt.items() if name in found}, "source": "service"}
    assert found.keys() >= server.prompt.keys() - {"a_field_of_tomorrow"}
    driver.advance(29.9)
    assert driver.get() == found
    (request,) = server.received
    assert (request.method, request.path) == ("GET", "/api/llm/prompts?name=support")
    assert request.headers["authorization"] == "Bearer svc_test"
    assert "if-none-match" not in request.headers


def test_get__each_question__is_asked_as_it_is(driver: Driver, server: PromptServer) -> None:
    driver.get("a/b", label="production", user_id="u 1", session_id="s&1")
    driver.get(version=3)
    driver.get("a/b", variables={"b": 1, "a": "x"}, label="production")
    driver.get("a/b", variables={"a": "x", "b": 1}, label="production")

    labelled, numbered, rendered = server.received
    assert labelled.path == "/api/llm/prompts?name=a%2Fb&label=production&user_id=u+1&session_id=s%261"
    assert numbered.path == "/api/llm/prompts?name=support&version=3"
    assert (rendered.method, rendered.path) == ("POST", "/api/llm/prompts/a%2Fb/render")
    assert rendered.body == {"label": "production", "variables": {"a": "x", "b": 1}}


def test_get__stale__returns_at_once_and_revalidates(driver: Driver, server: PromptServer) -> None:
    driver.get()
    driver.advance(31)
    assert driver.get()["system_prompt"] == "Be kind."
    assert reads(server, 2)
    assert server.received[1].headers["if-none-match"] == '"Be kind."'

    server.text = "Be brief."

    def new_version() -> bool:
        # The answer that the server has sent may reach the client only now, and makes the old version fresh again.
        driver.advance(31)
        return bool(driver.get()["system_prompt"] == "Be brief.")

    wait_until(new_version, what="the new version")


def test_get__too_old_to_be_stale__waits_for_the_new_one(driver: Driver, server: PromptServer) -> None:
    driver.get()
    server.text = "Be brief."
    driver.advance(331)

    assert driver.get()["system_prompt"] == "Be brief."


def test_get__answer_that_is_not_kept__is_read_each_time(driver: Driver, server: PromptServer) -> None:
    server.cache_control = "private, no-cache"
    for text in ("one", "two"):
        server.text = text
        assert driver.get()["system_prompt"] == text

    server.behaviour = "error"
    assert driver.get()["system_prompt"] == "two"


def test_get__a_thousand_at_once__is_one_read(driver: Driver, server: PromptServer) -> None:
    server.behaviour = "held"

    found = driver.get_at_once(1000, begun=server.release.set)

    assert len(found) == 1000
    assert {prompt["system_prompt"] for prompt in found} == {"Be kind."}
    assert len(server.received) == 1


@pytest.mark.parametrize("behaviour", [*WRONG, "busy"])
def test_get__wrong_answer_and_nothing_kept__is_the_fallback_or_an_error(
    driver: Driver, server: PromptServer, behaviour: str
) -> None:
    server.behaviour = behaviour

    found = driver.get(fallback="Be patient.")
    assert (found["system_prompt"], found["source"]) == ("Be patient.", "fallback")
    assert found["messages"] == [{"role": "system", "content": "Be patient."}]
    refused = driver.get()
    assert isinstance(refused, Refused) and refused.kind == "UnavailableError"
    # The second get found the failure of the first, and no other address was asked.
    assert [request.path for request in server.received] == ["/api/llm/prompts?name=support"]

    server.behaviour = "right"
    driver.advance(5)
    assert driver.get()["source"] == "service"


@pytest.mark.parametrize("behaviour", WRONG)
def test_get__wrong_answers_for_five_minutes__are_not_noticed(
    driver: Driver, server: PromptServer, behaviour: str
) -> None:
    kept = driver.get()
    server.behaviour = behaviour
    for _ in range(40):
        driver.advance(10)
        assert driver.get() == kept

    server.behaviour, server.text = "right", "Be brief."
    wait_until(lambda: later(driver)["system_prompt"] == "Be brief.", what="the new version")


def test_get__wrong_answers_for_more_than_a_day__end_what_was_kept(driver: Driver, server: PromptServer) -> None:
    driver.get()
    server.behaviour = "error"
    driver.advance(86_431)

    assert driver.get() == Refused("UnavailableError", 503, "service_unavailable")
    assert driver.get(fallback="Be patient.")["source"] == "fallback"


def test_get__no_answer__is_the_fallback_or_what_was_kept(hasty: Driver, server: PromptServer) -> None:
    server.behaviour = "held"
    assert hasty.get("other", fallback="Be patient.")["source"] == "fallback"
    # The next one does not wait again.
    assert hasty.get("other") == AWAY
    assert len(server.received) == 1

    server.behaviour = "right"
    hasty.advance(5)
    wait_until(lambda: not isinstance(later(hasty), Refused), what="an answer in time")
    kept = hasty.get()
    server.behaviour = "held"
    hasty.advance(400)
    assert hasty.get() == kept


@tabled
def test_get__refusal__is_raised_and_forgets_what_was_kept(
    driver: Driver, server: PromptServer, behaviour: str, status: int, code: str
) -> None:
    kept = driver.get()
    server.behaviour = behaviour
    driver.advance(331)
    refused = Refused("PromptGatewayError", status, code)

    assert driver.get() == refused
    # The service is not asked again at once.
    assert driver.get() == refused
    assert len(server.received) == 2
    server.behaviour = "error"
    driver.advance(5)
    assert driver.get() == Refused("UnavailableError", 503, "service_unavailable")
    server.behaviour = behaviour
    driver.advance(5)
    found = driver.get(fallback="Be patient.")
    assert found == refused if status != 404 else found["source"] == "fallback"
    server.behaviour = "right"
    driver.advance(5)
    # No ETag of what was forgotten is sent, so that the answer is whole.
    assert driver.get() == kept


def test_get__server_goes_away_and_comes_back__is_not_noticed(driver: Driver, server: PromptServer) -> None:
    kept = driver.get()
    server.behaviour = "error"
    driver.advance(31)
    assert driver.get() == kept
    wait_until(lambda: len(server.received) == 2, what="the failed revalidation")
    # Nothing is asked again for five seconds, however often the prompt is used.
    assert [driver.get() for _ in range(20)] == [kept] * 20
    assert len(server.received) == 2


async def test_async__many_at_once__are_one_read(server: PromptServer) -> None:
    client = AsyncPromptGateway(PromptGateway(server.base_url, "svc_test", "p", timeout=TIMEOUT_SECONDS))

    found = await asyncio.gather(*(client.get_prompt("support") for _ in range(1000)))

    assert {prompt.system_prompt for prompt in found} == {"Be kind."}
    assert len(server.received) == 1


@pytest.mark.parametrize("base_url", ["file:///etc/passwd", "localhost:8000", ""])
def test_client__address_that_is_none__is_refused(base_url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        PromptGateway(base_url, "svc_test", "p")
