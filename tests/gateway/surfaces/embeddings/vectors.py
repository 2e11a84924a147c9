"""Providers of embeddings in OpenAI's form, each with the vectors that it gives."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any

from tests.fakes.embeddings import TOKENS_PER_INPUT, vector
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received


def packed(values: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def embedding(*, floats_only: bool = False, counted: bool = True, **extra: Any) -> Step:
    """Returns a step that embeds the inputs as OpenAI does. A server with `floats_only` ignores the format that it is
    asked for; one that has not `counted` states no usage."""

    async def step(request: Received, connection: Connection) -> None:
        sent = json.loads(request.body)
        inputs = sent["input"] if isinstance(sent["input"], list) else [sent["input"]]
        if isinstance(inputs[0], int):
            inputs = [inputs]
        as_text = sent.get("encoding_format") == "base64" and not floats_only
        rows = [
            {"object": "embedding", "index": index, "embedding": packed(vector(one)) if as_text else vector(one)}
            for index, one in enumerate(inputs)
        ]
        tokens = TOKENS_PER_INPUT * len(inputs)
        usage = {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}} if counted else {}
        answer = {"object": "list", "data": rows, "model": sent["model"], **usage, **extra}
        await connection.send_whole(200, json.dumps(answer, indent=1).encode(), {"content-type": "application/json"})

    return step
