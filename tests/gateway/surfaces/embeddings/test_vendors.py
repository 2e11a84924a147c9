"""Embeddings of the vendors that have a protocol of their own, asked for with OpenAI's SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, script_path
from tests.fakes.embeddings import TOKENS_PER_INPUT, VENDORS, embeds, vector
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of

MODELS = {
    "google": "google/gemini-embedding-001",
    "google_vertex": "google_vertex/gemini-embedding-2",
    "google_vertex first": "google_vertex/gemini-embedding-001",
    "google_vertex predict": "google_vertex/text-embedding-005",
    "cohere": "embed-v4.0",
    "mistral": "mistral-embed",
    "bedrock titan": "amazon.titan-embed-text-v2:0",
    "bedrock cohere": "cohere.embed-v4:0",
}
# The most inputs that a vendor takes at once, where it takes fewer than the test sends.
AT_ONCE = {"google": 100, "google_vertex": 1, "google_vertex first": 1, "google_vertex predict": 8}
AT_ONCE |= {"cohere": 96, "bedrock titan": 1, "bedrock cohere": 96}


@pytest.fixture(scope="module")
def server() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


@pytest.fixture(scope="module")
def vendors(service: GatewayService, server: DialectServer) -> Gateway:
    return service.new_project(
        integrations=[integration_of(FAKES[provider], server.base_url(provider)) for provider in VENDORS]
    )


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest, server: DialectServer) -> str:
    for vendor, read in VENDORS.items():
        server.play(vendor, embeds(read))
    return str(request.param)


def create(gateway: Gateway, case: str, given: Any, **more: Any) -> openai.types.CreateEmbeddingResponse:
    with gateway.openai() as client:
        return client.embeddings.create(model=MODELS[case], input=given, **more)


def sent_to(server: DialectServer, case: str) -> list[dict[str, Any]]:
    return [json.loads(received.body) for received in server.script(case.split()[0]).received]


def test_texts__come_back_as_vectors_in_their_order(vendors: Gateway, case: str) -> None:
    answer = create(vendors, case, ["one", "three"])
    single = create(vendors, case, "eleven", encoding_format="float")

    assert [row.embedding for row in answer.data] == [vector("one"), vector("three")]
    assert [row.index for row in answer.data] == [0, 1]
    assert answer.model == MODELS[case].rpartition("/")[2]
    assert single.data[0].embedding == vector("eleven")


def test_usage__is_the_vendors_count_or_marked_as_an_estimate(vendors: Gateway, case: str) -> None:
    with vendors.openai() as client:
        raw = client.embeddings.with_raw_response.create(model=MODELS[case], input=["one", "three"])

    record = vendors.record(raw.headers["x-request-id"])
    usage = json.loads(raw.text)["usage"]
    if case == "bedrock cohere":
        assert usage == {"prompt_tokens": 3, "total_tokens": 3, "estimated": True}
    else:
        assert usage == {"prompt_tokens": 2 * TOKENS_PER_INPUT, "total_tokens": 2 * TOKENS_PER_INPUT}
    assert (record.prompt_tokens, record.completion_tokens) == (usage["prompt_tokens"], 0)
    assert (record.operation, record.provider) == ("embeddings", case.split()[0])


def test_batch__is_sent_in_as_many_calls_as_the_vendor_needs(
    vendors: Gateway, server: DialectServer, case: str
) -> None:
    texts = ["x" * (1 + number % 7) for number in range(120)]

    answer = create(vendors, case, texts)

    assert [row.embedding for row in answer.data] == [vector(text) for text in texts]
    assert len(sent_to(server, case)) == -(-120 // AT_ONCE.get(case, 2048))


def test_dimensions_and_purpose__have_the_vendors_names(vendors: Gateway, server: DialectServer, case: str) -> None:
    create(vendors, case, "one", dimensions=256, extra_body={"input_type": "search_query"})

    (sent,) = sent_to(server, case)
    match case:
        case "google":
            (sent,) = sent["requests"]
            assert (sent["outputDimensionality"], sent["taskType"]) == (256, "RETRIEVAL_QUERY")
        case "google_vertex":
            assert sent["embedContentConfig"] == {"outputDimensionality": 256, "taskType": "RETRIEVAL_QUERY"}
        case "google_vertex predict" | "google_vertex first":
            assert sent["parameters"] == {"outputDimensionality": 256}
            assert sent["instances"] == [{"content": "one", "task_type": "RETRIEVAL_QUERY"}]
        case "mistral":
            assert sent["output_dimension"] == 256
        case "bedrock titan":
            assert sent == {"inputText": "one", "dimensions": 256}
        case _:
            assert (sent["output_dimension"], sent["input_type"]) == (256, "search_query")


def test_tokens__are_refused_by_name(vendors: Gateway, server: DialectServer, case: str) -> None:
    with pytest.raises(openai.BadRequestError, match="input: ") as raised:
        create(vendors, case, [1, 2, 3])

    assert raised.value.code == "unsupported_parameter"
    assert not sent_to(server, case)


@pytest.mark.parametrize("model", ["amazon.titan-embed-text-v1", "cohere.embed-english-v3"])
def test_dimensions__of_a_model_that_has_one_length__are_refused(vendors: Gateway, model: str) -> None:
    with vendors.openai() as client, pytest.raises(openai.BadRequestError, match="dimensions: ") as raised:
        client.embeddings.create(model=model, input="one", dimensions=256)

    assert raised.value.code == "unsupported_parameter"


def test_bedrock_model__that_has_no_embeddings__is_not_found(vendors: Gateway) -> None:
    with vendors.openai() as client, pytest.raises(openai.NotFoundError, match="no embeddings"):
        client.embeddings.create(model="anthropic.claude-sonnet-4-5-20250929-v1:0", input="one")


def test_bedrock__is_asked_by_invoke_model(vendors: Gateway, server: DialectServer) -> None:
    server.play("bedrock", embeds(VENDORS["bedrock"]))

    create(vendors, "bedrock titan", "one")

    (received,) = server.script("bedrock").received
    assert script_path(received.path) == "/model/amazon.titan-embed-text-v2%3A0/invoke"
    assert received.headers["authorization"].startswith("AWS4-HMAC-SHA256 ")
