from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from core.errors import ApplicationError
from gateway.surfaces.chat.surface import ChatSurface
from gateway.surfaces.messages.errors import error_body
from integrations.providers.anthropic import batches as anthropic
from integrations.providers.base import Credentials
from integrations.providers.common.batch_results import BatchResult
from integrations.providers.common.endpoints import Endpoint
from integrations.providers.openai import batches as openai


class Vendor(NamedTuple):
    providers: tuple[str, ...]
    endpoint: Callable[[str, str, Credentials], Endpoint]
    read_result: Callable[[bytes], BatchResult]


OPENAI = Vendor(openai.BATCH_PROVIDERS, openai.endpoint, openai.read_result)
ANTHROPIC = Vendor(anthropic.BATCH_PROVIDERS, anthropic.endpoint, anthropic.read_result)


class StoredObjectSurface(ChatSurface):
    native_only = True

    def __init__(self, operation: str, vendor: Vendor) -> None:
        self.name = self.operation = operation
        self.vendor = vendor


class MessageBatchSurface(StoredObjectSurface):
    def error(self, error: ApplicationError, request_id: str) -> bytes:
        return error_body(error, request_id)


FILES = StoredObjectSurface("files", OPENAI)
BATCHES = StoredObjectSurface("batches", OPENAI)
MESSAGE_BATCHES = MessageBatchSurface("message_batches", ANTHROPIC)
