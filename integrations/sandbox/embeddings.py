"""The sandbox's embeddings: texts that share words get vectors that are close to each other."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from integrations.sandbox.answers import RejectedError
from integrations.sandbox.tokens import count

_DIMENSIONS = 8
_MAX_DIMENSIONS = 4096
_RANKED_DIMENSIONS = 512
_WORD = re.compile(r"\w+")


def embeddings_for(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer to a request of OpenAI's Embeddings API. Raises RejectedError."""
    inputs = _inputs(request.get("input"))
    dimensions = request.get("dimensions") or _DIMENSIONS
    if not isinstance(dimensions, int) or not 0 < dimensions <= _MAX_DIMENSIONS:
        raise RejectedError(f"dimensions has to be between 1 and {_MAX_DIMENSIONS}.", "dimensions")
    is_base64 = request.get("encoding_format") == "base64"
    vectors = [_vector(one, dimensions) for one in inputs]
    rows = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if is_base64 else vector}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(count(one) if isinstance(one, str) else len(one) for one in inputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": request.get("model"), "usage": usage}


def ranking_for(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer to a request to rank documents. Raises RejectedError."""
    query, documents = request.get("query"), request.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or not all(documents):
        raise RejectedError("query has to be a text, and documents a list of texts.", "documents")
    texts = [one if isinstance(one, str) else str(one.get("text")) for one in documents]
    question = _vector(query, _RANKED_DIMENSIONS)
    scores = [sum(a * b for a, b in zip(question, _vector(text, _RANKED_DIMENSIONS), strict=True)) for text in texts]
    ranked = sorted(range(len(texts)), key=lambda index: -scores[index])[: request.get("top_n")]
    results = [{"index": index, "relevance_score": round(scores[index], 4)} for index in ranked]
    tokens = count(query) + sum(map(count, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"id": "rerank-sandbox", "model": request.get("model"), "results": results, "usage": usage}


def _inputs(given: Any) -> list[str | list[int]]:
    inputs = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    if not all(one and isinstance(one, (str, list)) for one in inputs):
        raise RejectedError("input has to be a text, texts, tokens, or arrays of tokens.", "input")
    return inputs


def _vector(given: str | list[int], dimensions: int) -> list[float]:
    """Returns a vector of length 1, in which each word of the text has its place."""
    words = _WORD.findall(given.lower()) or [given] if isinstance(given, str) else [str(token) for token in given]
    sums = [0.0] * dimensions
    for word in words:
        digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
        sums[int.from_bytes(digest[:4], "big") % dimensions] += 1.0 + digest[4] / 256
    length = math.sqrt(sum(value * value for value in sums))
    return [round(value / length, 6) for value in sums]


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
