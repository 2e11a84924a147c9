"""Tokens of texts whose provider did not count them."""

from __future__ import annotations

# The field's rough rule for text without a tokenizer, which would block the loop: four bytes a token.
_BYTES_PER_TOKEN = 4


def estimated_tokens(size: int) -> int:
    """Tokens in `size` bytes, rounded up."""
    return -(-size // _BYTES_PER_TOKEN)
