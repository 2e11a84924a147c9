"""The behaviour of each sandbox model, as data (docs/sandbox-models.md). Any other name is 404."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A `status` other than 200 is answered at once. Delays are in seconds. Counts are of content chunks; a shorter
    answer misbehaves after its last one."""

    status: int = 200
    error_type: str = ""
    error_code: str | None = None
    message: str = ""
    retry_after: str = ""
    first_delay: float = 0.0
    chunk_delay: float = 0.0
    flaky: bool = False  # Every first, third… attempt at the same request gets a 503.
    # Every attempt at half of all requests behaves as the model named here; the bytes of a request decide whether it
    # belongs to that half.
    half: str = ""
    hang: bool = False  # The model never answers.
    empty: bool = False  # The answer has no content.
    error_event_after: int | None = None  # The stream sends an error event after this many chunks of content.
    hang_after: int | None = None  # The stream falls silent after this many chunks of content.
    cut_after: int | None = None  # The connection drops after this many chunks of content.
    reasoning: bool = False  # The model reasons before it answers.
    answer_words: int = 0  # The answer has this many words instead of the echo.
    mirror: bool = False  # The answer is the list of messages as JSON.

    @property
    def answers(self) -> bool:
        ends = (self.error_event_after, self.hang_after, self.cut_after)
        return self.status == 200 and not (self.flaky or self.half or self.hang) and all(end is None for end in ends)


def _error(status: int, error_type: str, message: str, code: str | None = None, retry_after: str = "") -> Behaviour:
    return Behaviour(status=status, error_type=error_type, error_code=code, message=message, retry_after=retry_after)


BEHAVIOURS = MappingProxyType(
    {
        "echo": Behaviour(),
        "judge": Behaviour(),  # Structured answers fit any schema, and so a rubric.
        "slow": Behaviour(first_delay=0.5, chunk_delay=0.1),
        "reasoning": Behaviour(reasoning=True),
        "long": Behaviour(answer_words=2000),
        "flaky": Behaviour(flaky=True),
        "half": Behaviour(half="error-500"),
        "hang-half": Behaviour(half="hang"),
        "mirror": Behaviour(mirror=True),
        "empty": Behaviour(empty=True),
        "hang": Behaviour(hang=True),
        "hang-mid-stream": Behaviour(hang_after=2),
        "error-mid-stream": Behaviour(error_event_after=2),
        "error-first": Behaviour(error_event_after=0),
        "cut-mid-stream": Behaviour(cut_after=2),
        "error-400": _error(400, "invalid_request_error", "The sandbox rejects this request.", "invalid_value"),
        "error-401": _error(401, "invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
        "error-403": _error(403, "permission_error", "The sandbox forbids this.", "forbidden"),
        "error-404": _error(404, "invalid_request_error", "The model does not exist.", "model_not_found"),
        "error-408": _error(408, "timeout", "The sandbox gave up waiting."),
        "error-413": _error(413, "invalid_request_error", "The request is too large."),
        "error-422": _error(422, "invalid_request_error", "The request cannot be processed."),
        "error-429": _error(429, "requests", "Rate limit reached.", "rate_limit_exceeded", retry_after="1"),
        "error-context-length": _error(
            400, "invalid_request_error", "This model's maximum context length is 1 token.", "context_length_exceeded"
        ),
        "error-content-filter": _error(
            400, "invalid_request_error", "The sandbox's content filter refuses this prompt.", "content_filter"
        ),
        "error-quota": _error(429, "insufficient_quota", "You exceeded your current quota.", "insufficient_quota"),
        "error-500": _error(500, "server_error", "The server had an error."),
        "error-502": _error(502, "server_error", "Bad gateway."),
        "error-503": _error(503, "server_error", "The engine is currently overloaded."),
        "error-529": _error(529, "overloaded_error", "Overloaded."),
    }
)


def behaviour_of(model: str) -> Behaviour:
    name = model.removeprefix("sandbox/")
    unknown = f"The sandbox has no model {name[:100]!r}; GET /v1/models lists those that it has."
    return BEHAVIOURS.get(name) or _error(404, "invalid_request_error", unknown, "model_not_found")
