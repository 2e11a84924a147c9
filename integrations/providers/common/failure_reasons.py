"""Finds the reason for a provider's refusal where its status does not show it: a prompt that is too long or filtered,
an account without money, or a credential that the provider does not accept.

The vendors' own codes come first; without a code the error text is compared with sentences that the vendors document
or that were recorded. The vendors' pages:
OpenAI https://platform.openai.com/docs/guides/error-codes
Azure https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter
Anthropic https://docs.anthropic.com/en/api/errors
Google https://ai.google.dev/gemini-api/docs/troubleshooting and, for the reasons of `ErrorInfo`,
https://cloud.google.com/apis/docs/reference/rpc/google.api#errorreason
Bedrock https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html and
https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html
Cohere https://docs.cohere.com/reference/errors
xAI https://docs.x.ai/docs/key-information/debugging
DeepSeek https://api-docs.deepseek.com/quick_start/error_codes
Groq https://console.groq.com/docs/errors
OpenRouter https://openrouter.ai/docs/api-reference/errors
Together https://docs.together.ai/docs/error-codes
Fireworks https://docs.fireworks.ai/guides/inference-error-codes
Z.ai https://docs.z.ai/api-reference/api-code
Moonshot https://platform.moonshot.ai/docs/api/chat
Model Studio https://www.alibabacloud.com/help/en/model-studio/error-code
Volcengine https://www.volcengine.com/docs/82379/1299023
Cloudflare https://developers.cloudflare.com/fundamentals/api/troubleshooting/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from integrations.providers.errors import MODEL_REFUSALS, FailureKind

_MAX_DEPTH = 8
_MAX_CHARACTERS = 4000
# The vendors' codes stand in these fields of any object of the body.
_CODE_FIELDS = ("code", "type", "status", "reason", "error_code", "error_type", "__type", "err_code", "status_code")

_CONTEXT_LENGTH_CODES = (
    "context_length_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "exceed_context_size_error",  # llama.cpp sends this code for a prompt that is too long.
    "request_too_large",  # Anthropic sends this code for a prompt that is too long.
    "tokens_limit_reached",  # GitHub sends this code for a prompt that is too long.
    "max_tokens_exceeded_error",
    "prompt_too_long",
)
_CONTENT_FILTER_CODES = (
    "content_filter",
    "content_filtered",
    "content_filter_error",
    "content_policy_violation",
    "responsibleaipolicyviolation",  # Azure sends this code in `innererror`.
    "invalid_prompt",  # OpenAI sends this code for a prompt that violates its usage policy.
    "moderation_blocked",
    "content_moderation",
    "prohibited_content",  # Google sends this code for a filtered prompt.
    "data_inspection_failed",  # Model Studio sends this code for a filtered prompt.
    "datainspectionfailed",
    "input_guardrail_triggered",  # Databricks sends this code for a filtered prompt.
    "output_guardrail_triggered",
    "safety_violation",
)
_QUOTA_CODES = (
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "billing_error",  # Anthropic sends this code for an account without money.
    "billing_not_active",
    "billing_hard_limit_reached",
    "blocked_api_access",  # Groq sends this code at the organization's spend limit.
    "exceeded_current_quota_error",  # Moonshot sends this code for an account without money.
    "payment_required",
    "arrearage",  # Model Studio sends this code for an account without money.
    "out_of_quota",
)
UNKNOWN_KEY_CODES = (
    "api_key_invalid",  # Google sends this code for a wrong key and, as a rule, for an expired one, under status 400.
    "api_key_expired",
    "access_token_expired",
    "credentials_missing",
    "unauthenticated",
    "invalid_api_key",
    "invalidapikey",  # Model Studio sends this code for a wrong key.
    "incorrect_api_key_error",  # Moonshot sends this code for a wrong key.
    "invalid_authentication_error",
    "wrong_api_key",  # Cerebras sends this code for a wrong key.
    "authentication_error",
    "authenticationerror",  # Volcengine sends this code for a wrong key.
    "account_deactivated",  # OpenAI sends this code for a closed account.
    "unauthorized",
    # AWS sends the names of exceptions.
    "expiredtoken",
    "expiredtokenexception",
    "incompletesignature",
    "incompletesignatureexception",
    "invalidclienttokenid",
    "invalidsignatureexception",
    "missingauthenticationtoken",
    "missingauthenticationtokenexception",
    "signaturedoesnotmatch",
    "unrecognizedclientexception",
)
"""The codes, in lower case, with which vendors say that they do not accept a credential, whatever the status."""
_KINDS = {
    **dict.fromkeys(_CONTEXT_LENGTH_CODES, FailureKind.CONTEXT_LENGTH),
    **dict.fromkeys(_CONTENT_FILTER_CODES, FailureKind.CONTENT_FILTER),
    **dict.fromkeys(_QUOTA_CODES, FailureKind.QUOTA),
    **dict.fromkeys(UNKNOWN_KEY_CODES, FailureKind.CREDENTIALS),
}
# The numeric codes of Zhipu (Z.ai, BigModel) are kept apart, since a number means something else at each vendor and may
# also be an HTTP status.
_ZHIPU_CODES = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), FailureKind.CREDENTIALS),
    **dict.fromkeys(("1110", "1111", "1112", "1121"), FailureKind.CREDENTIALS),  # The account is inactive or locked.
    "1113": FailureKind.QUOTA,
    "1261": FailureKind.CONTEXT_LENGTH,
    "1301": FailureKind.CONTENT_FILTER,
}
_NUMBERS: Mapping[str, Mapping[str, FailureKind]] = {
    "zai": _ZHIPU_CODES,
    "bigmodel": _ZHIPU_CODES,
    "minimax": {
        "1002": FailureKind.RATE_LIMITED,
        "1004": FailureKind.CREDENTIALS,
        "1008": FailureKind.QUOTA,
        "1026": FailureKind.CONTENT_FILTER,
        "1027": FailureKind.CONTENT_FILTER,
        "1039": FailureKind.RATE_LIMITED,  # The code counts the tokens of a minute.
        "2049": FailureKind.CREDENTIALS,
    },
    # Cloudflare answers 400 for a token that cannot be one.
    "cloudflare": dict.fromkeys(("6003", "6111", "9109", "10000"), FailureKind.CREDENTIALS),
    "xiaomi_mimo": {"421": FailureKind.CONTENT_FILTER},
}


def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_TOO_LONG = _any_of(
    # OpenAI, vLLM, DeepSeek, xAI and OpenRouter use this phrase for a prompt that is too long.
    r"maximum (?:allowed )?(?:context|prompt|model|input) length",
    # Anthropic, Bedrock, Fireworks and Ollama use this phrase for a prompt that is too long.
    r"\b(?:prompt|input) (?:is |was )?too (?:long|large)",
    r"exceed\w*\b[^.\n]{0,60}\bcontext (?:length|window|size|limit)",
    r"\bcontext[ _](?:length|window|size|limit)\b[^.\n]{0,40}\bexceed",
    r"(?:longer|larger|greater) than (?:the|this) (?:model'?s? )?(?:maximum )?(?:context|model) length",
    r"context length is only|configured context size is",
    # Google, Nova and GitHub use this phrase for a prompt that is too long.
    r"\b(?:input|prompt) tokens?(?: count)?\b[^.\n]{0,60}\b(?:exceed|only supports)",
    r"exceeds the maximum number of (?:input )?tokens",
    # SGLang and Model Studio use this phrase for a prompt that is too long.
    r"\binput length\b[^.\n]{0,40}\b(?:exceed|should be \[)",
    # Cohere and Nova use this phrase for a prompt that is too long; the excluded continuations are rate limits.
    r"too many (?:input )?tokens(?!, please wait| per)",
    r"too large for model with",  # Mistral uses this phrase for a prompt that is too long.
    r"exceed\w* (?:the )?model token limit",  # Moonshot uses this phrase for a prompt that is too long.
    r"max(?:imum)? tokens of \d+ exceeded",  # Snowflake uses this phrase for a prompt that is too long.
    # text-generation-inference uses this phrase for a prompt that is too long.
    r"`inputs` (?:tokens \+|must have less than)",
    # OpenAI, Groq and Cerebras use this phrase for a prompt that is too long.
    r"reduce the length of the (?:messages|prompt|input|conversation)",
    r"prompt exceeds max",  # Z.ai uses this phrase for a prompt that is too long.
    r"tokens in the prompt cannot exceed",  # Cohere uses this phrase for a prompt that is too long.
    r"messages\[\d+\]\.content\S* string too long",  # OpenAI uses this phrase for a single text of more than 10 MB.
    r"input request: expected maxlength",  # Titan on Bedrock uses this phrase for a prompt that is too long.
    r"request payload size exceeds",  # Google uses this phrase for a prompt that is too long.
    r"request body too large for",  # GitHub uses this phrase for a prompt that is too long.
)
_FILTERED = _any_of(
    r"content management policy",  # Azure uses this phrase for a filtered prompt.
    r"content[ _-]filter(?:s|ing)? polic",  # Anthropic and Claude on Bedrock use this phrase for a filtered prompt.
    r"\b(?:blocked|flagged|filtered|refused) by (?:our |the )?(?:content|safety|moderation|guardrail)",
    r"guardrail (?:intervened|violation|was triggered)",
    # OpenAI, xAI and Vertex AI use this phrase for a filtered prompt.
    r"\bviolat\w+\b[^.\n]{0,40}\b(?:usage|content|safety|responsible ai) (?:guideline|polic|practice)",
    # OpenRouter uses this phrase for a filtered prompt.
    r"\b(?:input|prompt|content|request|message)s? (?:was|were|is|has been|have been) flagged\b",
    r"\brequires moderation\b",
    r"content exists risk",  # DeepSeek uses this phrase for a filtered prompt.
    r"considered high risk",  # Moonshot uses this phrase for a filtered prompt.
    # Model Studio, Google and Z.ai use this phrase for a filtered prompt.
    r"\b(?:inappropriate|prohibited|sensitive|unsafe)(?: or \w+)? content",
    r"\bnew_sensitive",  # MiniMax uses this phrase for a filtered prompt.
    r"\bsafety_check_type",  # xAI uses this phrase for a filtered prompt.
    r"\bprohibited_content",
    r"\bblocked (?:input|output|prompt)\b",  # Cohere uses this phrase for a filtered prompt.
)
_EXHAUSTED = _any_of(
    r"credit balance is too low",  # Anthropic uses this phrase for an account without money.
    # DeepSeek, OpenRouter and Z.ai use this phrase for an account without money.
    r"insufficient (?:account )?(?:balance|credits?|funds|quota)",
    r"billing hard limit|account is not active",  # OpenAI uses this phrase for an account without money.
    r"used all (?:of )?(?:its |your )?available credits",  # xAI uses this phrase for an account without money.
    r"\bspend(?:ing)? (?:limit|cap)",  # xAI, Together, Google and Groq use this phrase for an account without money.
    r"monthly included credits",  # Hugging Face uses this phrase for an account without money.
    # Google uses this phrase for an account without money.
    r"credits? (?:are|is|have been|has been) (?:depleted|exhausted|used up)",
    r"(?:requires more|not enough|out of) credits",  # OpenRouter uses this phrase for an account without money.
    r"trial key\b[^\n]{0,120}\bcalls? ?/ ?month",  # Cohere uses this phrase for an account without money.
    r"out of call volume quota",  # Azure uses this phrase for an account without money.
    r"no resource package",  # Z.ai uses this phrase for an account without money.
    r"failure to pay|past due (?:invoice|balance)",  # Fireworks uses this phrase for an account without money.
)
# A client's own words may contain any of these phrases, and an error may quote them (the description of a tool, a
# server of tools that refused the client's token): only a sentence that begins with one speaks of the credential.
_UNKNOWN_KEY = re.compile(
    r"(?:^|[.!]\s+|\n)\s*(?:(?:authentication ?error|bad request|error|unauthorized): )?(?:"
    + "|".join(
        (
            # Google and DeepInfra use this phrase for a wrong or expired key.
            r"api key (?:is |has )?(?:not valid|not found|invalid|incorrect|expired)\b",
            # OpenAI, xAI, Groq and Model Studio use this phrase for a wrong key.
            r"(?:incorrect|invalid|wrong|expired|unknown) api[ -]?key(?: provided| supplied)?\s*(?:[.:,!]|$)",
            r"(?:the|your) (?:provided |supplied )?api key (?:you provided )?"
            r"(?:is|was|has been) (?:invalid|incorrect|not valid|expired|revoked|disabled|deleted)\b",
            # AWS uses these phrases for a wrong or expired key.
            r"the security token included in the request is (?:invalid|expired)",
            r"the request signature we calculated does not match",
            r"access denied due to invalid subscription key",  # Azure uses this phrase for a wrong key.
            # GitHub and Hugging Face use these phrases for a wrong token, under status 400.
            r"authorization header is (?:badly formatted|correct, but the token seems invalid)",
            # Anthropic uses these phrases for a closed account and a subscription's token, under status 400.
            r"(?:this|your) organization has been disabled",
            r"this credential is only authorized for",
        )
    )
    + ")",
    re.IGNORECASE,
)
# OpenAI writes this of an account without money, and Google of every limit of a minute or a day.
_CURRENT_QUOTA = re.compile(r"(?i)\bexceeded your current quota\b")
_RESOURCE_EXHAUSTED = "resource_exhausted"
# Groq answers 413 or 400 for a request that alone exceeds a rate limit.
_RATE_WORDS = re.compile(r"(?i)\b(?:tokens|requests) per (?:minute|hour|day)\b|\brate limit")


def reason_in(decoded: Any, message: str, status: int | None, *, provider: str = "") -> FailureKind | None:
    """The kind of failure that the body shows; None if only the status shows it. `status` is None for a failure after
    the status was sent. `decoded` is the body's JSON, or None; `message` is its error text."""
    if status == 402:
        return FailureKind.QUOTA
    if status in (404, 405, 408):
        return None
    codes = {code.lower() for code in _codes(decoded, _MAX_DEPTH)}
    numbers = _NUMBERS.get(provider)
    if numbers is not None and (known := codes.union([str(status)]).intersection(numbers)):
        return numbers[min(known)]
    kind = _by_code(codes) or _by_words(message[:_MAX_CHARACTERS], codes)
    if status == 413 and kind is None:
        return FailureKind.RATE_LIMITED if _RATE_WORDS.search(message) else FailureKind.CONTEXT_LENGTH
    possible = _OF_SERVER_ERRORS if status is not None and status >= 500 else _POSSIBLE.get(status or 0, _ANY)
    return kind if kind in possible else None


def refuses_credential(decoded: Any, message: str) -> bool:
    """Whether the provider does not know or no longer accepts the credential. Denying a known credential one call is a
    different failure. `decoded` is the body's JSON."""
    return not _UNKNOWN_KEYS.isdisjoint(code.lower() for code in _codes(decoded, _MAX_DEPTH)) or _names_key(message)


def _names_key(message: str) -> bool:
    text = message[:_MAX_CHARACTERS]
    # xAI has sent its sentences in percent codes.
    return _UNKNOWN_KEY.search(unquote(text) if "%20" in text else text) is not None


_UNKNOWN_KEYS = frozenset(UNKNOWN_KEY_CODES)
_OF_SERVER_ERRORS = MODEL_REFUSALS | {FailureKind.CREDENTIALS}
_ANY = _OF_SERVER_ERRORS | {FailureKind.QUOTA}
_POSSIBLE = {
    401: frozenset({FailureKind.QUOTA}),  # Perplexity answers 401 for an account without credit.
    # xAI and OpenRouter answer 403 for a request that their filter refuses.
    403: frozenset({FailureKind.CONTENT_FILTER, FailureKind.QUOTA}),
    429: frozenset({FailureKind.QUOTA}),
}


def _by_code(codes: set[str]) -> FailureKind | None:
    kinds = {_KINDS[code] for code in codes.intersection(_KINDS)}
    # The results in a filter's error may contain codes of other kinds, so the kinds have an order of precedence.
    return next((kind for kind in _PRECEDENCE if kind in kinds), None)


_PRECEDENCE = (FailureKind.QUOTA, FailureKind.CREDENTIALS, FailureKind.CONTENT_FILTER, FailureKind.CONTEXT_LENGTH)


def _by_words(message: str, codes: set[str]) -> FailureKind | None:
    if _EXHAUSTED.search(message):
        return FailureKind.QUOTA
    if _CURRENT_QUOTA.search(message) and _RESOURCE_EXHAUSTED not in codes:
        return FailureKind.QUOTA if _RESOURCE_EXHAUSTED not in message.lower() else None
    if _names_key(message):
        return FailureKind.CREDENTIALS
    if _FILTERED.search(message):
        return FailureKind.CONTENT_FILTER
    if _TOO_LONG.search(message) and not _RATE_WORDS.search(message):
        return FailureKind.CONTEXT_LENGTH
    return None


def _codes(decoded: Any, depth: int) -> Iterator[str]:
    if depth <= 0:
        return
    if isinstance(decoded, list):
        for item in decoded[:20]:
            yield from _codes(item, depth - 1)
    elif isinstance(decoded, Mapping):
        for name, value in decoded.items():
            if name in _CODE_FIELDS and isinstance(value, (str, int)):
                yield str(value)
            else:
                yield from _codes(_vendors_words(name, value), depth - 1)


def _vendors_words(name: str, value: Any) -> Any:
    """Decodes the text that OpenRouter passes on from the vendor (`raw`); None for the client's own words, which
    FastAPI repeats (`input`)."""
    if name == "raw" and isinstance(value, str):
        return _json(value)
    return None if name == "input" else value


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
