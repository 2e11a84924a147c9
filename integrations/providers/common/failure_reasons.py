"""The reason for a provider's refusal where its status does not show it: too long, filtered, or an account without
means.

The vendors' own codes come first; where there is none, the sentences that they document or were recorded to say.
OpenAI https://platform.openai.com/docs/guides/error-codes
Azure https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter
Anthropic https://docs.anthropic.com/en/api/errors
Google https://ai.google.dev/gemini-api/docs/troubleshooting
Bedrock https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
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
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.errors import OF_THE_MODEL, FailureKind

_MAX_DEPTH = 6
_MAX_CHARACTERS = 4000
# Where codes stand, in whatever object of the body.
_CODE_FIELDS = ("code", "type", "status", "reason", "error_code", "error_type", "__type", "err_code", "status_code")

_CONTEXT_LENGTH_CODES = (
    "context_length_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "exceed_context_size_error",  # llama.cpp
    "request_too_large",  # Anthropic
    "tokens_limit_reached",  # GitHub
    "max_tokens_exceeded_error",
    "prompt_too_long",
)
_CONTENT_FILTER_CODES = (
    "content_filter",
    "content_filtered",
    "content_filter_error",
    "content_policy_violation",
    "responsibleaipolicyviolation",  # Azure, in `innererror`
    "invalid_prompt",  # OpenAI: flagged for its usage policy
    "moderation_blocked",
    "content_moderation",
    "prohibited_content",  # Google
    "data_inspection_failed",  # Model Studio
    "datainspectionfailed",
    "input_guardrail_triggered",  # Databricks
    "output_guardrail_triggered",
    "safety_violation",
)
_QUOTA_CODES = (
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "billing_error",  # Anthropic
    "billing_not_active",
    "billing_hard_limit_reached",
    "blocked_api_access",  # Groq: the organization's spend limit
    "exceeded_current_quota_error",  # Moonshot
    "payment_required",
    "arrearage",  # Model Studio
    "out_of_quota",
)
_KINDS = {
    **dict.fromkeys(_CONTEXT_LENGTH_CODES, FailureKind.CONTEXT_LENGTH),
    **dict.fromkeys(_CONTENT_FILTER_CODES, FailureKind.CONTENT_FILTER),
    **dict.fromkeys(_QUOTA_CODES, FailureKind.QUOTA),
}
# Numbers mean something else at each vendor; also a status of HTTP may be one.
_OF_ZHIPU = {
    "1113": FailureKind.QUOTA,
    "1261": FailureKind.CONTEXT_LENGTH,
    "1301": FailureKind.CONTENT_FILTER,
}
_NUMBERS: Mapping[str, Mapping[str, FailureKind]] = {
    "zai": _OF_ZHIPU,
    "bigmodel": _OF_ZHIPU,
    "minimax": {
        "1002": FailureKind.RATE_LIMITED,
        "1004": FailureKind.CREDENTIALS,
        "1008": FailureKind.QUOTA,
        "1026": FailureKind.CONTENT_FILTER,
        "1027": FailureKind.CONTENT_FILTER,
        "1039": FailureKind.RATE_LIMITED,  # tokens of a minute
        "2049": FailureKind.CREDENTIALS,
    },
    "xiaomi_mimo": {"421": FailureKind.CONTENT_FILTER},
}


def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_TOO_LONG = _any_of(
    r"maximum (?:allowed )?(?:context|prompt|model|input) length",  # OpenAI, vLLM, DeepSeek, xAI, OpenRouter
    r"\b(?:prompt|input) (?:is |was )?too (?:long|large)",  # Anthropic, Bedrock, Fireworks, Ollama
    r"exceed\w*\b[^.\n]{0,60}\bcontext (?:length|window|size|limit)",
    r"\bcontext[ _](?:length|window|size|limit)\b[^.\n]{0,40}\bexceed",
    r"(?:longer|larger|greater) than (?:the|this) (?:model'?s? )?(?:maximum )?(?:context|model) length",
    r"context length is only|configured context size is",
    r"\b(?:input|prompt) tokens?(?: count)?\b[^.\n]{0,60}\b(?:exceed|only supports)",  # Google, Nova, GitHub
    r"exceeds the maximum number of (?:input )?tokens",
    r"\binput length\b[^.\n]{0,40}\b(?:exceed|should be \[)",  # SGLang, Model Studio
    r"too many (?:input )?tokens(?!, please wait| per)",  # Cohere, Nova; what is left out is a rate
    r"too large for model with",  # Mistral
    r"exceed\w* (?:the )?model token limit",  # Moonshot
    r"max(?:imum)? tokens of \d+ exceeded",  # Snowflake
    r"`inputs` (?:tokens \+|must have less than)",  # text-generation-inference
    r"reduce the length of the (?:messages|prompt|input|conversation)",  # OpenAI, Groq, Cerebras
    r"prompt exceeds max",  # Z.ai
    r"tokens in the prompt cannot exceed",  # Cohere
    r"messages\[\d+\]\.content\S* string too long",  # OpenAI: one text of more than 10 MB
    r"input request: expected maxlength",  # Bedrock's Titan
    r"request payload size exceeds",  # Google
    r"request body too large for",  # GitHub
)
_FILTERED = _any_of(
    r"content management policy",  # Azure
    r"content[ _-]filter(?:s|ing)? polic",  # Anthropic, and Claude on Bedrock
    r"\b(?:blocked|flagged|filtered|refused) by (?:our |the )?(?:content|safety|moderation|guardrail)",
    r"guardrail (?:intervened|violation|was triggered)",
    # OpenAI, xAI, Vertex
    r"\bviolat\w+\b[^.\n]{0,40}\b(?:usage|content|safety|responsible ai) (?:guideline|polic|practice)",
    r"\b(?:input|prompt|content|request|message)s? (?:was|were|is|has been|have been) flagged\b",  # OpenRouter
    r"\brequires moderation\b",
    r"content exists risk",  # DeepSeek
    r"considered high risk",  # Moonshot
    r"\b(?:inappropriate|prohibited|sensitive|unsafe)(?: or \w+)? content",  # Model Studio, Google, Z.ai
    r"\bnew_sensitive",  # MiniMax
    r"\bsafety_check_type",  # xAI
    r"\bprohibited_content",
    r"\bblocked (?:input|output|prompt)\b",  # Cohere
)
_EXHAUSTED = _any_of(
    r"credit balance is too low",  # Anthropic
    r"insufficient (?:account )?(?:balance|credits?|funds|quota)",  # DeepSeek, OpenRouter, Z.ai
    r"billing hard limit|account is not active",  # OpenAI
    r"used all (?:of )?(?:its |your )?available credits",  # xAI
    r"\bspend(?:ing)? (?:limit|cap)",  # xAI, Together, Google, Groq
    r"monthly included credits",  # Hugging Face
    r"credits? (?:are|is|have been|has been) (?:depleted|exhausted|used up)",  # Google
    r"(?:requires more|not enough|out of) credits",  # OpenRouter
    r"trial key\b[^\n]{0,120}\bcalls? ?/ ?month",  # Cohere
    r"out of call volume quota",  # Azure
    r"no resource package",  # Z.ai
    r"failure to pay|past due (?:invoice|balance)",  # Fireworks
)
# OpenAI's sentence for an account without money, and Google's for every limit of a minute or a day.
_CURRENT_QUOTA = re.compile(r"(?i)\bexceeded your current quota\b")
_RESOURCE_EXHAUSTED = "resource_exhausted"
# A limit that a request alone is larger than, told as 413 or 400 (Groq).
_OF_A_TIME = re.compile(r"(?i)\b(?:tokens|requests) per (?:minute|hour|day)\b|\brate limit")


def reason_in(decoded: Any, message: str, status: int | None, *, provider: str = "") -> FailureKind | None:
    """Returns the kind of failure that the body shows beyond its status, which is None where the failure came too late
    to have one.

    `decoded` is the body's JSON, or None; `message` what it says in words. None when the status is all there is.
    """
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
        return FailureKind.RATE_LIMITED if _OF_A_TIME.search(message) else FailureKind.CONTEXT_LENGTH
    possible = OF_THE_MODEL if status is not None and status >= 500 else _POSSIBLE.get(status or 0, _ANY)
    return kind if kind in possible else None


_ANY = OF_THE_MODEL | {FailureKind.QUOTA}
_POSSIBLE = {
    401: frozenset({FailureKind.QUOTA}),  # Perplexity
    # xAI and OpenRouter refuse what they filter as forbidden.
    403: frozenset({FailureKind.CONTENT_FILTER, FailureKind.QUOTA}),
    429: frozenset({FailureKind.QUOTA}),
}


def _by_code(codes: set[str]) -> FailureKind | None:
    kinds = {_KINDS[code] for code in codes.intersection(_KINDS)}
    # A filter's error may hold what looks like another one's, among the results of its parts.
    return next((kind for kind in _PRECEDENCE if kind in kinds), None)


_PRECEDENCE = (FailureKind.QUOTA, FailureKind.CONTENT_FILTER, FailureKind.CONTEXT_LENGTH)


def _by_words(message: str, codes: set[str]) -> FailureKind | None:
    if _EXHAUSTED.search(message):
        return FailureKind.QUOTA
    if _CURRENT_QUOTA.search(message) and _RESOURCE_EXHAUSTED not in codes:
        return FailureKind.QUOTA if _RESOURCE_EXHAUSTED not in message.lower() else None
    if _FILTERED.search(message):
        return FailureKind.CONTENT_FILTER
    if _TOO_LONG.search(message) and not _OF_A_TIME.search(message):
        return FailureKind.CONTEXT_LENGTH
    return None


def _codes(decoded: Any, depth: int) -> Iterator[str]:
    """Every code in a body, wherever it stands; what OpenRouter passes on as a text (`raw`) is read as well."""
    if depth <= 0:
        return
    if isinstance(decoded, list):
        for item in decoded[:20]:
            yield from _codes(item, depth - 1)
    elif isinstance(decoded, Mapping):
        for name, value in decoded.items():
            if name in _CODE_FIELDS and isinstance(value, (str, int)):
                yield str(value)
            elif name == "raw" and isinstance(value, str):
                yield from _codes(_json(value), depth - 1)
            else:
                yield from _codes(value, depth - 1)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
