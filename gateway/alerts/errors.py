from __future__ import annotations


class DeliveryError(Exception):
    """The message is shown to operators: it must hold no address or secret. `is_final`: a retry cannot help."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
