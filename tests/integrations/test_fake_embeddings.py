"""Tests the fakes of embeddings against the vendors' official SDKs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import boto3
import httpx
import pytest
from botocore.config import Config
from cohere import ClientV2
from google.genai import types
from mistralai.client import Mistral

from tests.fakes.dialects import google as google_fakes
from tests.fakes.dialects.bedrock import KEY_ID, REGION, SECRET_KEY
from tests.fakes.dialects.server import DialectServer
from tests.fakes.embeddings import TOKENS_PER_INPUT, VENDORS, embeds, vector
from tests.integrations.fakes.sdks import google_client

TEXTS = ["one", "three"]
VECTORS = [vector(text) for text in TEXTS]


@pytest.fixture
def server() -> Iterator[DialectServer]:
    with DialectServer() as running:
        for vendor, read in VENDORS.items():
            running.play(vendor, embeds(read))
        yield running


def test_gemini__several_texts__read_by_the_sdk(server: DialectServer) -> None:
    with google_client(google_fakes.FAKE.credentials(server.base_url("google"))) as client:
        config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY", output_dimensionality=3)
        answer = client.models.embed_content(model="gemini-embedding-001", contents=list(TEXTS), config=config)

    assert [row.values for row in answer.embeddings or ()] == VECTORS


@pytest.mark.parametrize("model", ["gemini-embedding-001", "text-embedding-005"])
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1]])
def test_vertex__texts__read_by_the_sdk(server: DialectServer, model: str, texts: list[str]) -> None:
    with google_client(google_fakes.VERTEX_FAKE.credentials(server.base_url("google_vertex"))) as client:
        config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY", output_dimensionality=3)
        answer = client.models.embed_content(model=model, contents=list(texts), config=config)

    assert [row.values for row in answer.embeddings or ()] == VECTORS[: len(texts)]


def test_cohere__texts__read_by_the_sdk(server: DialectServer) -> None:
    with httpx.Client() as transport:
        client = ClientV2(api_key="key", base_url=server.base_url("cohere"), httpx_client=transport)
        answer = client.embed(
            model="embed-v4.0", texts=TEXTS, input_type="search_query", embedding_types=["float"], output_dimension=3
        )

    assert answer.embeddings.float_ == VECTORS
    assert answer.meta is not None
    assert answer.meta.billed_units is not None
    assert answer.meta.billed_units.input_tokens == 2 * TOKENS_PER_INPUT


def test_mistral__texts__read_by_the_sdk(server: DialectServer) -> None:
    with Mistral(api_key="key", server_url=server.base_url("mistral")) as client:
        answer = client.embeddings.create(model="codestral-embed", inputs=TEXTS, output_dimension=3)

    assert [row.embedding for row in answer.data] == VECTORS
    assert answer.usage.prompt_tokens == 2 * TOKENS_PER_INPUT


def test_bedrock__body_of_each_vendor__passes_boto3(server: DialectServer) -> None:
    session = boto3.Session(KEY_ID, SECRET_KEY, region_name=REGION)
    config = Config(retries={"total_max_attempts": 1})
    client = session.client("bedrock-runtime", endpoint_url=server.base_url("bedrock"), config=config)
    try:
        titan = client.invoke_model(
            modelId="amazon.titan-embed-text-v2:0", body=json.dumps({"inputText": "one", "dimensions": 256})
        )
        body = {"texts": TEXTS, "input_type": "search_document"}
        cohere = client.invoke_model(modelId="cohere.embed-english-v3", body=json.dumps(body))
        assert json.loads(titan["body"].read())["embedding"] == VECTORS[0]
        assert json.loads(cohere["body"].read())["embeddings"] == VECTORS
    finally:
        client.close()
