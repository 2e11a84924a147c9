"""Moderations of Mistral (https://docs.mistral.ai/api/endpoint/classifiers), whose answer names the categories that
apply, and no verdict on the whole, which OpenAI's clients read."""

from __future__ import annotations

import msgspec
from typing_extensions import override

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.mistral.adapter import ADAPTER
from integrations.providers.openai.operations import Moderations


class MistralModerations(Moderations):
    @override
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        answer = super()._parse(request, body)
        fields = self._fields(body)
        for result in fields["results"]:
            if isinstance(result, dict) and isinstance(result.get("categories"), dict):
                result.setdefault("flagged", any(result["categories"].values()))
        return msgspec.structs.replace(answer, body=msgspec.json.encode(fields))


FORWARDERS = {"mistral": MistralModerations(ADAPTER, "moderations")}
