"""This project's gateway for clients of other protocols: translated for a provider of OpenAI's dialect, and native."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from benchmarks.targets.base import Endpoint
from benchmarks.targets.ours import Ours


class OursSurface(Ours):
    address: ClassVar[str]

    def start(self, mock_port: int) -> Endpoint:
        return replace(super().start(mock_port), path=f"/api/gateway/{self.address}")


class OursMessages(OursSurface):
    name: ClassVar[str] = "ours-messages"
    label: ClassVar[str] = "Prompt Gateway, Messages translated"
    address: ClassVar[str] = "v1/messages"


class OursResponses(OursSurface):
    name: ClassVar[str] = "ours-responses"
    label: ClassVar[str] = "Prompt Gateway, Responses translated"
    address: ClassVar[str] = "v1/responses"
    provider: ClassVar[str] = "together"
    model: ClassVar[str] = "together/openai/gpt-oss-20b"


class OursMessagesNative(OursSurface):
    name: ClassVar[str] = "ours-messages-native"
    label: ClassVar[str] = "Prompt Gateway, Messages native"
    address: ClassVar[str] = "v1/messages"
    provider: ClassVar[str] = "anthropic"
    model: ClassVar[str] = "claude-haiku-4-5"
    upstream_path: ClassVar[str] = ""


class OursResponsesNative(OursSurface):
    name: ClassVar[str] = "ours-responses-native"
    label: ClassVar[str] = "Prompt Gateway, Responses native"
    address: ClassVar[str] = "v1/responses"


class OursGemini(OursSurface):
    name: ClassVar[str] = "ours-gemini"
    label: ClassVar[str] = "Prompt Gateway, Gemini translated"
    address: ClassVar[str] = f"v1beta/models/{Ours.model}:generateContent"


class OursGeminiNative(OursSurface):
    name: ClassVar[str] = "ours-gemini-native"
    label: ClassVar[str] = "Prompt Gateway, Gemini native"
    provider: ClassVar[str] = "google"
    model: ClassVar[str] = "gemini-2.5-flash"
    upstream_path: ClassVar[str] = "/v1beta"
    address: ClassVar[str] = f"v1beta/models/{model}:generateContent"


SURFACES: tuple[type[OursSurface], ...] = (
    OursMessages,
    OursMessagesNative,
    OursResponses,
    OursResponsesNative,
    OursGemini,
    OursGeminiNative,
)
