"""Tests thinking, reasoning in histories, and sampling in requests to Converse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integrations.bedrock_exchanges import CLAUDE, NOVA
from tests.integrations.bedrock_requests import (
    OWN_PROFILE,
    USER,
    contents,
)


def signed(signature: str = "c2ln", form: str = "anthropic-claude-v1") -> list[dict[str, Any]]:
    return [
        {"type": "reasoning.text", "text": "Hm.", "signature": signature, "format": form},
        {"type": "reasoning.encrypted", "data": "RXRr+/==", "format": form},
    ]


@pytest.mark.parametrize("model", [CLAUDE, NOVA, OWN_PROFILE])
@pytest.mark.parametrize("form", ["google-gemini-v1", "openai-responses-v1", "amazon-bedrock-v1", ""])
def test_reasoning__of_another_vendor_or_unsigned__left_out(model: str, form: str) -> None:
    if model == NOVA and form == "amazon-bedrock-v1":
        form = "anthropic-claude-v1"
    for more in ({"reasoning_details": signed(form=form)}, {"reasoning_content": "Hm."}):
        message = {"role": "assistant", "content": "Yes.", **more}
        assert contents(USER, message, USER, model=model)[1][1] == [{"text": "Yes."}]
