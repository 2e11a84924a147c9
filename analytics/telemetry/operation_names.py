"""The names that spans give to the operations of requests."""

from __future__ import annotations

from typing import Final, NamedTuple

from analytics.request_log.record import Operation

_BASE: Final = "/api/gateway/v1"


class OperationNames(NamedTuple):
    """The HTTP route of an operation, its `gen_ai.operation.name`, and its `gen_ai.output.type` where the operation
    itself asks for a modality."""

    route: str
    name: str
    output_type: str = ""


# The conventions have a list of operations, whose names must be used where one applies, and leave others to be named
# (https://github.com/open-telemetry/semantic-conventions-genai, model spans): they have none for counts, ranking,
# moderation and transcription, which keep the gateway's own.
_NAMES: Final = {
    Operation.CHAT: OperationNames(f"{_BASE}/chat/completions", "chat"),
    Operation.RESPONSES: OperationNames(f"{_BASE}/responses", "chat"),
    Operation.MESSAGES: OperationNames(f"{_BASE}/messages", "chat"),
    Operation.COUNT_TOKENS: OperationNames(f"{_BASE}/messages/count_tokens", "count_tokens"),
    Operation.EMBEDDINGS: OperationNames(f"{_BASE}/embeddings", "embeddings"),
    Operation.COMPLETIONS: OperationNames(f"{_BASE}/completions", "text_completion"),
    Operation.RERANK: OperationNames(f"{_BASE}/rerank", "rerank"),
    Operation.MODERATIONS: OperationNames(f"{_BASE}/moderations", "moderations"),
    Operation.TRANSCRIPTIONS: OperationNames(f"{_BASE}/audio/transcriptions", "transcriptions", "text"),
    Operation.SPEECH: OperationNames(f"{_BASE}/audio/speech", "generate_content", "speech"),
    Operation.IMAGES: OperationNames(f"{_BASE}/images/generations", "generate_content", "image"),
}


def operation_names(operation: str) -> OperationNames:
    """Returns the names of an operation; those of one that this version does not know are made from its own."""
    try:
        return _NAMES[Operation(operation)]
    except ValueError:
        return OperationNames(f"{_BASE}/{operation}", operation)
