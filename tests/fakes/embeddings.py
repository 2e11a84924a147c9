"""Fakes of the vendors' embeddings: each reads a request as strictly as the vendor does and gives vectors that tell
texts apart. Requests that the vendor would refuse get its 400."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.dialects.server import script_path
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received

TOKENS_PER_INPUT = 3
Read = Callable[[str, dict[str, Any]], dict[str, Any]]


def vector(text: Any) -> list[float]:
    """Tells inputs apart; 32 bits hold its numbers exactly."""
    return [len(str(text)) / 4, 0.5, -0.25]


def embeds(read: Read) -> Step:
    """`read` answers a request, given its path and body; it raises AssertionError for one that the vendor would
    refuse.
    """

    async def step(request: Received, connection: Connection) -> None:
        try:
            status, answer = 200, read(script_path(request.path), json.loads(request.body))
        except AssertionError as problem:
            status, answer = 400, {"message": f"not a request of this vendor: {problem}"}
        await connection.send_whole(status, json.dumps(answer).encode(), {"content-type": "application/json"})

    return step


def gemini(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """https://ai.google.dev/api/embeddings#method:-models.batchembedcontents"""
    model, _, method = path[path.index("models/") :].partition(":")
    assert method == "batchEmbedContents", path
    assert set(body) == {"requests"}
    assert 0 < len(body["requests"]) <= 100
    rows = []
    for row in body["requests"]:
        assert set(row) <= {"model", "content", "taskType", "outputDimensionality", "title"}, row
        assert row["model"] == model
        rows.append({"values": vector(_text(row["content"]))})
    return {"embeddings": rows, "usageMetadata": {"promptTokenCount": TOKENS_PER_INPUT * len(rows)}}


def vertex(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api"""
    assert "/publishers/google/models/" in path, path
    model, _, method = path.rpartition("/")[2].partition(":")
    if method == "predict":
        assert model.startswith("gemini-embedding-001") or "gemini" not in model
        assert set(body) <= {"instances", "parameters"}
        assert len(body["instances"]) == 1 or "gemini" not in model, "one text at a time"
        assert len(body["instances"]) * 2048 <= 20_000, "too many tokens"
        for instance in body["instances"]:
            assert set(instance) <= {"content", "task_type", "title"}, instance
        statistics = {"token_count": float(TOKENS_PER_INPUT), "truncated": False}
        made = [{"values": vector(row["content"]), "statistics": statistics} for row in body["instances"]]
        return {"predictions": [{"embeddings": one} for one in made]}
    if method == "embedContent":
        return {"embedding": _gemini_on_vertex(body), "usageMetadata": {"promptTokenCount": TOKENS_PER_INPUT}}
    assert method == "batchEmbedContents", path
    rows = [_gemini_on_vertex(row) for row in body["requests"]]
    return {"embeddings": rows, "usageMetadata": {"promptTokenCount": TOKENS_PER_INPUT * len(rows)}}


def _gemini_on_vertex(row: Mapping[str, Any]) -> dict[str, Any]:
    assert set(row) <= {"content", "embedContentConfig"}, row
    assert set(row.get("embedContentConfig") or {}) <= {"taskType", "outputDimensionality", "title", "autoTruncate"}
    return {"values": vector(_text(row["content"]))}


def _text(content: Mapping[str, Any]) -> str:
    (part,) = content["parts"]
    assert set(part) == {"text"}
    assert content.get("role", "user") == "user"
    return str(part["text"])


def cohere(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """https://docs.cohere.com/reference/embed"""
    assert path == "/v2/embed", path
    assert set(body) <= {"model", "texts", "input_type", "embedding_types", "output_dimension", "truncate"}, body
    assert body["input_type"] in ("search_document", "search_query", "classification", "clustering")
    assert body["embedding_types"] == ["float"]
    assert 0 < len(body["texts"]) <= 96
    tokens = TOKENS_PER_INPUT * len(body["texts"])
    return {
        "id": "46752333-4b62-4ac6-abe7-efc50c056c67",
        "embeddings": {"float": [vector(text) for text in body["texts"]]},
        "texts": body["texts"],
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}},
        "response_type": "embeddings_by_type",
    }


def mistral(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """https://docs.mistral.ai/api/endpoint/embeddings"""
    assert path == "/v1/embeddings", path
    assert set(body) <= {"model", "input", "output_dimension", "output_dtype", "encoding_format", "metadata"}, body
    inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
    assert all(isinstance(one, str) for one in inputs)
    tokens = TOKENS_PER_INPUT * len(inputs)
    rows = [{"object": "embedding", "index": index, "embedding": vector(one)} for index, one in enumerate(inputs)]
    usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
    return {"id": "e1", "object": "list", "data": rows, "model": body["model"], "usage": usage}


def bedrock(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html and
    https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html"""
    _, _, model, action = path.split("/")
    assert action == "invoke", path
    if "titan" in model:
        assert set(body) <= {"inputText", "dimensions", "normalize", "embeddingTypes"}, body
        assert "dimensions" not in body or "v2" in model
        return {"embedding": vector(body["inputText"]), "inputTextTokenCount": TOKENS_PER_INPUT}
    assert set(body) <= {"texts", "input_type", "embedding_types", "output_dimension", "truncate"}, body
    assert body["input_type"] in ("search_document", "search_query", "classification", "clustering")
    assert 0 < len(body["texts"]) <= 96
    made = [vector(text) for text in body["texts"]]
    by_type = "embedding_types" in body
    return {
        "id": "e1",
        "embeddings": {"float": made} if by_type else made,
        "response_type": "embeddings_by_type" if by_type else "embeddings_floats",
        "texts": body["texts"],
    }


VENDORS: dict[str, Read] = {
    "google": gemini,
    "google_vertex": vertex,
    "cohere": cohere,
    "mistral": mistral,
    "bedrock": bedrock,
}
