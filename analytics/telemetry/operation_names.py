from __future__ import annotations

from typing import Final, NamedTuple

from analytics.request_log.record import Operation

ROOT: Final = "/api/gateway/v1/"
"""The address below which the gateway serves all operations but Gemini's."""

_GEMINI: Final = "/api/gateway/v1beta/models/{model}:"


class OperationNames(NamedTuple):
    route: str
    name: str
    output_type: str = ""


# The conventions have a list of operations, whose names must be used where one applies, and leave others to be named
# (https://github.com/open-telemetry/semantic-conventions-genai, model spans): they have none for counts, ranking,
# moderation, transcription, files and batches, which keep the gateway's own.
_NAMES: Final = {
    Operation.CHAT: OperationNames(f"{ROOT}chat/completions", "chat"),
    Operation.RESPONSES: OperationNames(f"{ROOT}responses", "chat"),
    Operation.MESSAGES: OperationNames(f"{ROOT}messages", "chat"),
    Operation.COUNT_TOKENS: OperationNames(f"{ROOT}messages/count_tokens", "count_tokens"),
    Operation.EMBEDDINGS: OperationNames(f"{ROOT}embeddings", "embeddings"),
    Operation.COMPLETIONS: OperationNames(f"{ROOT}completions", "text_completion"),
    Operation.RERANK: OperationNames(f"{ROOT}rerank", "rerank"),
    Operation.MODERATIONS: OperationNames(f"{ROOT}moderations", "moderations"),
    Operation.TRANSCRIPTIONS: OperationNames(f"{ROOT}audio/transcriptions", "transcriptions", "text"),
    Operation.SPEECH: OperationNames(f"{ROOT}audio/speech", "generate_content", "speech"),
    Operation.IMAGES: OperationNames(f"{ROOT}images/generations", "generate_content", "image"),
    Operation.GENERATE_CONTENT: OperationNames(f"{_GEMINI}generateContent", "generate_content"),
    Operation.COUNT_CONTENT_TOKENS: OperationNames(f"{_GEMINI}countTokens", "count_tokens"),
    Operation.FILES: OperationNames(f"{ROOT}files", "files"),
    Operation.BATCHES: OperationNames(f"{ROOT}batches", "batches"),
    Operation.MESSAGE_BATCHES: OperationNames(f"{ROOT}messages/batches", "message_batches"),
}


def operation_names(operation: str) -> OperationNames:
    try:
        return _NAMES[Operation(operation)]
    except ValueError:
        return OperationNames(f"{ROOT}{operation}", operation)
