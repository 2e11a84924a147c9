"""The errors that the client raises."""

from __future__ import annotations


class PromptGatewayError(Exception):
    """The service refused the call: `status` and `code` are those of its answer."""

    def __init__(self, message: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def again(self) -> PromptGatewayError:
        """Returns an equal error, for another caller: one that is raised again keeps the frames of the first."""
        return type(self)(str(self), status=self.status, code=self.code)


class UnavailableError(PromptGatewayError):
    """The service gave no usable answer: it is away, too slow or failing. Trying again later may help."""
