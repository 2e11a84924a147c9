"""The gateway's failures, and the one translation of a provider's failure into a status (docs/routing.md).

ApplicationError
├── ValidationError                 core: 400 invalid_request_error
│   ├── RequestTimeoutError         408: the body did not arrive in time
│   ├── RequestTooLargeError        413 message_too_large: the whole body
│   ├── ProviderRejectedError       400 provider_rejected
│   ├── ModelRefusalError           400 context_length_exceeded, content_filter
│   ├── UnsupportedError            400 unsupported_parameter
│   └── MethodNotAllowedError       405
├── GuardrailError                  400 guardrail_error: prompt_too_long, blocked_topic, pii_detected, prompt_injection,
│   │                                   blocked_tool
│   └── LowQualityError                 400 low_quality
├── ModelNotAllowedError            403 permission_error: model_not_allowed
├── ModelNotFoundError              404 model_not_found
├── PromptConfigNotFoundError       404 prompt_config_not_found
├── RateLimitedError                429 rate_limit_error: requests_per_minute, tokens_per_minute; behind team_, key_ or
│                                       user_ these and concurrent_requests
├── BudgetExceededError             429 budget_error: monthly_budget_exceeded, session_budget_exceeded,
│                                       team_ or key_monthly_budget_exceeded, team_ or key_total_budget_exceeded,
│                                       user_monthly_budget_exceeded
├── ProviderFailedError             500 provider_error
├── CredentialUnreadableError       500 credential_unreadable
├── InternalError                   500 internal_error
├── LimitsUnavailableError          503 limits_unavailable
├── ServiceRestartingError          503 service_restarting
└── ProviderUnavailableError        503 provider_unavailable, provider_timeout
    └── QuotaError                      503 insufficient_quota
"""

from __future__ import annotations

import math
from typing import Any

from core.errors import (
    ApplicationError,
    BodyTooLargeError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    ValidationError,
)
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError

_MAX_WAIT_SECONDS = 3600.0


class RequestTimeoutError(ValidationError):
    status = 408
    code = "request_timeout"


class RequestTooLargeError(BodyTooLargeError):
    code = "message_too_large"


MethodNotAllowedError = ValidationError.kind("method_not_allowed", status=405)
ProviderRejectedError = ValidationError.kind("provider_rejected")


class WithProviderError(ApplicationError):
    """A failure that only the vendor's message explains.

    `provider_error` is `{"provider", "status", "error"}`: the provider's name and its own error object, as far as
    known, without secrets.
    """

    def __init__(self, message: str, failure: ProviderError, **given: Any) -> None:
        super().__init__(message, **given)
        self.provider_error = {
            "provider": failure.provider,
            "status": failure.status,
            "error": failure.details or {"message": failure.message},
        }

    def envelope(self) -> dict[str, dict[str, Any]]:
        return {"error": {**super().envelope()["error"], "provider_error": self.provider_error}}


class ModelRefusalError(WithProviderError, ValidationError):
    """The prompt is too long (`context_length_exceeded`), or the vendor's filter refused it (`content_filter`).

    OpenAI's SDKs raise this type as a BadRequestError.
    """


class UnsupportedError(ValidationError):
    code = "unsupported_parameter"

    def __init__(self, message: str, *, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class GuardrailError(ApplicationError):
    status = 400
    type = "guardrail_error"
    code = "blocked_topic"


class LowQualityError(GuardrailError):
    code = "low_quality"


# The patterns of the request's API key exclude every model and provider that could answer.
ModelNotAllowedError = PermissionDeniedError.kind("model_not_allowed")
ModelNotFoundError = NotFoundError.kind("model_not_found")
PromptConfigNotFoundError = NotFoundError.kind("prompt_config_not_found")


class RateLimitedError(ApplicationError):
    status = 429
    type = "rate_limit_error"
    code = "requests_per_minute"


class BudgetExceededError(ApplicationError):
    status = 429
    type = "budget_error"
    code = "monthly_budget_exceeded"


ProviderFailedError = ApplicationError.kind("provider_error")


class CredentialUnreadableError(ApplicationError):
    code = "credential_unreadable"


InternalError = ApplicationError.kind("internal_error")


class ProviderUnavailableError(ServiceUnavailableError):
    code = "provider_unavailable"


LimitsUnavailableError = ServiceUnavailableError.kind(
    "limits_unavailable",
    "Requests cannot be counted while Redis is away, and the project's setting limits_without_redis refuses them then",
)


ServiceRestartingError = ServiceUnavailableError.kind(
    "service_restarting", "The service is restarting and could not finish the answer; send the request again"
)


class QuotaError(WithProviderError, ProviderUnavailableError):
    """The operator's account at the provider has no money or quota left.

    Waiting does not help, so a header keeps OpenAI's SDKs from retrying.
    """

    code = "insufficient_quota"


def from_provider(failure: ProviderError) -> ApplicationError:
    message = f"{failure.provider}: {failure.message}" if failure.provider else failure.message
    if isinstance(failure, UnsupportedParameterError):
        problem = f"{failure.message} ({failure.provider})" if failure.provider else failure.message
        return UnsupportedError(problem, parameter=failure.parameter)
    match failure.kind:
        case FailureKind.REJECTED:
            return ProviderRejectedError(message)
        case FailureKind.CONTEXT_LENGTH | FailureKind.CONTENT_FILTER:
            return ModelRefusalError(message, failure, code=failure.kind.value)
        case FailureKind.QUOTA:
            return QuotaError(message, failure, headers={"x-should-retry": "false", **(_wait(failure) or {})})
        case FailureKind.NOT_FOUND:
            return ModelNotFoundError(message)
        case FailureKind.CREDENTIALS | FailureKind.UNUSABLE:
            return ProviderFailedError(message)
        case FailureKind.TIMEOUT:
            return ProviderUnavailableError(message, code="provider_timeout", headers=_wait(failure))
        case FailureKind.RATE_LIMITED | FailureKind.UNAVAILABLE:
            return ProviderUnavailableError(message, headers=_wait(failure))


def _wait(failure: ProviderError) -> dict[str, str] | None:
    """`retry-after` has an upper bound, because a provider whose quota is over may name the end of the day."""
    wait = failure.retry_after
    if wait is None or not math.isfinite(wait):
        return None
    return {"retry-after": str(math.ceil(min(wait, _MAX_WAIT_SECONDS)))}


def require_method(method: str, served: str, allow: str = "") -> None:
    """Raises MethodNotAllowedError unless `method` is `served`. `allow` lists the path's methods if there are several.

    HEAD counts as GET (RFC 9110, section 9.3.2): the server omits the body.
    """
    if method != served and not (method == "HEAD" and served == "GET"):
        all_methods = (allow or served).replace("GET", "GET, HEAD")
        raise MethodNotAllowedError(f"Use {allow or served}", headers={"allow": all_methods})
