"""The error of a failed alert delivery."""

from __future__ import annotations


class DeliveryError(Exception):
    """A delivery failed; with `is_final` another try cannot help. The message is shown to operators and holds neither
    address nor secret."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
