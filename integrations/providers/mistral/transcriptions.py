"""Transcriptions of Mistral (https://docs.mistral.ai/api/endpoint/audio/transcriptions), in OpenAI's form."""

from __future__ import annotations

from integrations.providers.mistral.adapter import ADAPTER
from integrations.providers.openai.transcriptions import TranscriptionsForwarder

FORWARDERS = {"mistral": TranscriptionsForwarder(ADAPTER)}
