"""Tests requests to Converse: model ids, parameters, formats of the answer, fields in Converse's own form."""

from __future__ import annotations

import pytest

from integrations.providers.bedrock.models import model_of
from tests.integrations.bedrock_exchanges import CLAUDE
from tests.integrations.bedrock_requests import (
    CLAUDE_3,
    GPT_OSS,
    OPUS_4_6,
    OWN_PROFILE,
    SONNET_5,
)


@pytest.mark.parametrize(
    ("model", "vendor", "version"),
    [
        (CLAUDE, "anthropic", (4, 5)),
        (CLAUDE_3, "anthropic", (3, 0)),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic", (3, 5)),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "anthropic", (3, 7)),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "anthropic", (4, 0)),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "anthropic", (4, 1)),
        (OPUS_4_6, "anthropic", (4, 6)),
        (SONNET_5, "anthropic", (5, 0)),
        ("anthropic.claude-fable-5-1", "anthropic", (5, 1)),
        ("anthropic.claude-v2:1", "anthropic", (0, 0)),
        ("anthropic.claude-instant-v1", "anthropic", (0, 0)),
        (f"arn:aws:bedrock:us-east-1:1:inference-profile/{CLAUDE}", "anthropic", (4, 5)),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "amazon", (0, 0)),
        (OWN_PROFILE, "", (0, 0)),
        (GPT_OSS, "openai", (0, 0)),
        ("us.moonshotai.kimi-k3", "moonshotai", (0, 0)),
        ("moonshot.kimi-k2-thinking", "moonshot", (0, 0)),
    ],
)
def test_model_of__id_profile_or_arn__vendor_and_version(model: str, vendor: str, version: tuple[int, int]) -> None:
    assert (model_of(model).vendor, model_of(model).version) == (vendor, version)
