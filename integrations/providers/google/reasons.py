"""Google's names of the reasons why an answer ended."""

from __future__ import annotations

# google.cloud.aiplatform.v1.Candidate.FinishReason by number.
_NUMBERS = (
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "UNEXPECTED_TOOL_CALL",
    "NO_IMAGE",
)


def reason_named(native: str | int | None) -> str:
    """Google's name of the reason, in capitals; empty when the answer has none."""
    if isinstance(native, int):
        return _NUMBERS[native] if 0 <= native < len(_NUMBERS) else f"REASON_{native}"
    return (native or "").upper()
