"""`GET /models` and `GET /models/{id}`: what a project can call now, as the official SDKs read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.sandbox import SandboxProcess
from tests.gateway.service import PRICED_MODEL, Gateway, GatewayService
from tests.gateway.wire import assert_error, body

PATH = "/api/gateway/v1/models"
HELLO: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def sandboxed(service: GatewayService) -> Iterator[Gateway]:
    with SandboxProcess() as sandbox:
        yield service.new_project(base_urls={"sandbox": sandbox.base_url})


@pytest.fixture(scope="module")
def vendors(service: GatewayService) -> Gateway:
    """A project whose providers are never reached: a list needs none of them."""
    down = "http://127.0.0.1:9"
    return service.new_project(base_urls={"openai": f"{down}/v1", "anthropic": down, "groq": f"{down}/v1"})


@pytest.fixture
def claude(vendors: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=vendors.key, base_url=f"{vendors.service.base_url()}/api/gateway") as made:
        yield made


def listed(gateway: Gateway) -> dict[str, dict[str, Any]]:
    response = gateway.client.get(PATH, headers=gateway.headers)
    assert response.status_code == 200, response.text
    return {model["id"]: model for model in response.json()["data"]}


def test_listed_models__of_the_sandbox__can_all_be_called(sandboxed: Gateway) -> None:
    with sandboxed.openai() as client:
        names = [model.id for model in client.models.list()]
        answers = {name: client.chat.completions.create(model=name, messages=HELLO) for name in names}
        vectors = [client.embeddings.create(model=name, input="Hello") for name in names]

    assert all("embeddings" in model["operations"] for model in listed(sandboxed).values())
    assert len(vectors) == len(names)
    assert "sandbox/echo" in names
    assert {name for name, answer in answers.items() if answer.choices[0].finish_reason != "stop"} == set()


def test_listed_models__of_vendors__have_their_facts(vendors: Gateway) -> None:
    models = listed(vendors)
    claude = models["claude-sonnet-5"]

    assert {model["owned_by"] for name, model in models.items() if name.startswith("gpt-5")} == {"openai"}
    assert (claude["provider"], claude["prefix"]) == ("anthropic", "claude-")
    assert claude["operations"] == ["chat", "responses", "messages", "completions", "generate_content"]
    assert claude["context_window"] >= 200_000
    assert claude["max_output_tokens"] >= 8_000
    assert claude["abilities"]["tools"] is claude["abilities"]["images"] is claude["abilities"]["reasoning"] is True
    assert claude["prices"] is None
    assert models["gpt-5"]["abilities"]["structured_output"] is True


def test_listed_models__with_a_price__show_it_as_decimal_text(vendors: Gateway) -> None:
    priced = listed(vendors)[f"openai/{PRICED_MODEL}"]

    assert priced["prices"] == {
        "input_cost_per_1m": "2",
        "output_cost_per_1m": "8",
        "cache_read_cost_per_1m": None,
        "cache_write_cost_per_1m": None,
    }


def test_listed_models__each__begins_with_its_prefix_among_the_prefixes(vendors: Gateway) -> None:
    answer = vendors.client.get(PATH, headers=vendors.headers).json()
    prefixes = {prefix["id"]: prefix for prefix in answer["prefixes"]}

    assert answer["data"]
    for model in answer["data"]:
        assert model["id"].startswith(model["prefix"])
        assert model["provider"] in prefixes[model["prefix"]]["providers"]
        assert prefixes[model["prefix"]]["enabled"] is True
    assert prefixes["gpt-"]["providers"] == ["openai", "azure_openai"]
    assert prefixes["gemini-"]["enabled"] is False


def test_listed_models__name_that_goes_elsewhere__has_its_provider_before_it(vendors: Gateway) -> None:
    models = listed(vendors)

    assert models["groq/openai/gpt-oss-120b"]["provider"] == "groq"
    assert "openai/gpt-oss-120b" not in models


def test_listed_models__of_no_use_here__are_left_out(vendors: Gateway) -> None:
    names = listed(vendors)

    assert not [name for name in names if name.endswith("*") or name.startswith(("ft:", "us/")) or "realtime" in name]


def test_auto__with_a_preferred_model__is_listed_first(service: GatewayService) -> None:
    gateway = service.new_project(base_urls={"openai": "http://127.0.0.1:9"})
    assert "auto" not in listed(gateway)

    service.set_routing(gateway.project_id, preferred_models=["claude-sonnet-5"])
    service.set_routing(gateway.project_id, preferred_models=["claude-sonnet-5", "gpt-5"])

    names = service.until(lambda: list(listed(gateway)), lambda found: found[0] == "auto")
    assert names[0] == "auto"


def test_provider_switched_off__its_models_are_gone(service: GatewayService) -> None:
    gateway = service.new_project(
        integrations=[{"provider": "openai", "base_url": "http://127.0.0.1:9", "api_key": "k", "enabled": False}]
    )

    assert listed(gateway) == {}


def test_one_model__by_id_and_by_full_name__is_the_listed_one(vendors: Gateway) -> None:
    with vendors.openai() as client:
        short, full = client.models.retrieve("gpt-5"), client.models.retrieve("openai/gpt-5")
        slashed = client.models.retrieve("groq/openai/gpt-oss-120b")

    assert (short.id, full.id, slashed.id) == ("gpt-5", "openai/gpt-5", "groq/openai/gpt-oss-120b")
    assert short.owned_by == full.owned_by == "openai"
    assert vendors.client.get(f"{PATH}/gpt-5/", headers=vendors.headers).json() == listed(vendors)["gpt-5"]


@pytest.mark.parametrize("name", ["gpt-5-of-tomorrow", "openai/gpt-5-of-tomorrow"])
def test_one_model__in_no_list_yet__is_there_as_for_a_call(vendors: Gateway, name: str) -> None:
    found = vendors.client.get(f"{PATH}/{name}", headers=vendors.headers)

    assert (found.status_code, found.json()["id"], found.json()["owned_by"]) == (200, name, "openai")


@pytest.mark.parametrize("path", ["v1beta/models/gpt-5:batchGenerateContent", "v1/models/gpt-5:predict"])
def test_method_of_a_model__that_the_gateway_does_not_have__is_404_and_named(vendors: Gateway, path: str) -> None:
    headers = {**vendors.headers, "x-goog-api-key": "k"}
    answer = vendors.client.post(f"/api/gateway/{path}", headers=headers, json={"batch": {}})

    assert answer.status_code == 404, answer.text
    assert repr(path.rpartition(":")[2]) in answer.json()["error"]["message"]
    assert "streamGenerateContent" in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["nothing", "gemini-2.5-pro", "gpt-", "openai/"])
def test_one_model__not_listed__is_404(vendors: Gateway, name: str) -> None:
    response = vendors.client.get(f"{PATH}/{name}", headers=vendors.headers)

    assert name.strip("/") in assert_error(response, 404, "model_not_found", type="not_found_error")


def test_anthropic_client__lists_and_finds_models_in_its_form(claude: anthropic.Anthropic) -> None:
    page = claude.models.list(limit=1000)
    names = [model.id for model in page]
    one = claude.models.retrieve("claude-sonnet-5")

    assert "claude-sonnet-5" in names
    assert (page.first_id, page.last_id, page.has_more) == (names[0], names[-1], False)
    assert (one.type, one.id) == ("model", "claude-sonnet-5")
    assert one.display_name
    assert one.created_at.tzinfo is not None
    assert one.max_input_tokens is not None
    assert one.max_input_tokens >= 200_000


def test_anthropic_client__failures__are_the_errors_of_its_sdk(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="nothing"):
        claude.models.retrieve("nothing")
    with pytest.raises(anthropic.AuthenticationError):
        claude.with_options(api_key="svc_wrong").models.list()


def test_openai_client__wrong_key__is_401(vendors: Gateway) -> None:
    with vendors.openai() as client, pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="svc_wrong").models.list()


@pytest.mark.parametrize(
    "path",
    ["/api/gateway/v1/models/", "/api/gateway/v1/v1/models", "/api/gateway/v1//models", "/api/gateway//v1/models"],
)
def test_models__of_addresses_that_clients_build__are_the_same(vendors: Gateway, path: str) -> None:
    assert vendors.client.get(path, headers=vendors.headers).json()["data"]


@pytest.mark.parametrize("path", ["/v1/v1/chat/completions", "/v1//chat/completions", "/v1/v1/chat/completions/"])
def test_completions__of_addresses_that_clients_build__are_answered(gateway: Gateway, path: str) -> None:
    response = gateway.client.post(f"/api/gateway{path}", json=body(), headers=gateway.headers)

    assert response.status_code == 200, response.text


@pytest.mark.parametrize("path", [PATH, f"{PATH}/gpt-4o", f"{PATH}/no-such-model", "/healthz", "/readyz", "/metrics"])
def test_head__of_a_path_with_get__is_its_answer_without_the_body(vendors: Gateway, path: str) -> None:
    """RFC 9110, section 9.3.2."""
    whole, head = (vendors.client.request(method, path, headers=vendors.headers) for method in ("GET", "HEAD"))

    assert head.status_code == whole.status_code
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.content == b""


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_models__written_to__names_the_methods(vendors: Gateway, method: str) -> None:
    answer = vendors.client.request(method, PATH, headers=vendors.headers)

    assert_error(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"
