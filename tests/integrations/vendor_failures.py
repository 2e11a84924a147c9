"""Error answers of providers that refuse a request: provider, status, body (a text is the message of OpenAI's shape),
and the expected kind. The texts are the vendors' own, documented or recorded."""

from __future__ import annotations

from typing import Any

from integrations.providers.errors import FailureKind

LONG, FILTER, QUOTA = FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER, FailureKind.QUOTA
REJECTED, LIMITED, REFUSED = FailureKind.REJECTED, FailureKind.RATE_LIMITED, FailureKind.CREDENTIALS


def openai(message: str, code: Any = None, type: Any = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": "messages", "code": code, **more}}


def anthropic(message: str, type: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}


def google(message: str, status: str = "INVALID_ARGUMENT", code: int = 400, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


AZURE_FILTER = openai(
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "content_filter",
    None,
    status=400,
    innererror={
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
)
OPENROUTER_RAW = {
    "error": {
        "message": "Provider returned error",
        "code": 400,
        "metadata": {
            "raw": '{"error":{"message":"Too long.","type":"invalid_request_error","code":"context_length_exceeded"}}',
            "provider_name": "Azure",
        },
    }
}
OPENROUTER_MODERATION = {
    "error": {
        "code": 403,
        "message": 'openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "violence".',
        "metadata": {"reasons": ["violence"], "flagged_input": "how to …", "provider_name": "OpenAI"},
    }
}


FAILURE_CASES: list[tuple[str, int, Any, FailureKind]] = [
    # The prompts of these cases are too long.
    ("openai", 400, openai("Shorten it.", "context_length_exceeded"), LONG),
    (
        "openai",
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
        LONG,
    ),
    ("openai", 400, "Your input exceeds the context window of this model. Please adjust your input.", LONG),
    ("openai", 400, "Invalid 'messages[1].content': string too long. Expected maximum length 10485760.", LONG),
    ("openai", 400, "Invalid 'messages[1].content[0].text': string too long. Expected a shorter one.", LONG),
    ("azure_openai", 400, openai("Too many.", "context_length_exceeded", None), LONG),
    ("azure_openai", 413, b"Failed to buffer the request body: length limit exceeded", LONG),
    ("anthropic", 400, anthropic("prompt is too long: 205930 tokens > 200000 maximum"), LONG),
    ("anthropic", 400, anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), LONG),
    ("anthropic", 413, anthropic("Request exceeds the maximum size", "request_too_large"), LONG),
    (
        "google",
        400,
        google("The input token count (1250006) exceeds the maximum number of tokens allowed (1048576)."),
        LONG,
    ),
    ("google_vertex", 400, google("The input token count is 1100000 but model only supports up to 1048576."), LONG),
    ("google", 400, google("Request payload size exceeds the limit: 20971520 bytes."), LONG),
    ("bedrock", 400, {"message": "Input is too long for requested model."}, LONG),
    ("bedrock", 400, {"message": "The model returned the following errors: prompt is too long: 1 > 0"}, LONG),
    (
        "bedrock",
        400,
        {"message": "Too many input tokens. Max input tokens: 300000, request input token count: 4"},
        LONG,
    ),
    ("bedrock", 400, {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length."}, LONG),
    ("bedrock", 400, {"message": "Malformed input request: expected maxLength: 50000, actual: 67000"}, LONG),
    ("bedrock", 424, {"message": "The model returned the following errors: Input is too long."}, LONG),
    (
        "mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 34036 tokens, too large for model with 32768 maximum context length",
            "type": "invalid_request_prompt",
            "code": "3051",
        },
        LONG,
    ),
    (
        "cohere",
        400,
        {"message": "too many tokens: size limit exceeded by 11326 tokens. Try using shorter inputs"},
        LONG,
    ),
    ("cohere", 400, {"message": "the total number of tokens in the prompt cannot exceed 4081 - received 4292"}, LONG),
    (
        "xai",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        },
        LONG,
    ),
    ("groq", 400, openai("Please reduce the length of the messages or completion.", "context_length_exceeded"), LONG),
    ("groq", 413, openai("Request Entity Too Large", "request_too_large"), LONG),
    ("deepseek", 400, "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens", LONG),
    (
        "openrouter",
        400,
        {"error": {"code": 400, "message": "This endpoint's maximum context length is 32768 tokens."}},
        LONG,
    ),
    ("openrouter", 400, OPENROUTER_RAW, LONG),
    ("together", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000", LONG),
    ("together", 400, "The input (400030 tokens) is longer than the model's context length (262144 tokens).", LONG),
    ("fireworks", 400, "The prompt is too long: 200001, model maximum context length: 131071", LONG),
    ("cerebras", 400, openai("Current length is 8600 while limit is 8192", "context_length_exceeded"), LONG),
    (
        "huggingface",
        422,
        {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500"},
        LONG,
    ),
    ("perplexity", 400, "Requested tokens exceed context window of 127072", LONG),
    ("snowflake", 400, {"message": "max tokens of 8191 exceeded", "request_id": "1"}, LONG),
    ("zai", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, LONG),
    (
        "vllm",
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400},
        LONG,
    ),
    ("vllm", 400, "You passed 5000 input tokens. However, the model's context length is only 4096 tokens", LONG),
    ("vllm", 400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", LONG),
    ("ollama", 400, {"error": "prompt too long; exceeded max context length by 4096 tokens"}, LONG),
    ("openai_compatible", 400, openai("the request exceeds it", 400, "exceed_context_size_error"), LONG),
    ("openai_compatible", 500, "the request exceeds the available context size, try increasing it", LONG),
    ("openai_compatible", 400, "tokens to keep from the initial prompt is greater than the context length", LONG),
    ("openai_compatible", 400, "Your request exceeded model token limit: 262144 (requested: 300000)", LONG),
    (
        "openai_compatible",
        400,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        LONG,
    ),
    ("openai_compatible", 400, "invalid params, context window exceeds limit (2013)", LONG),
    ("openai_compatible", 413, openai("Request body too large for gpt-4o model.", "tokens_limit_reached"), LONG),
    ("openai_compatible", 400, "prompt token count of 145000 exceeds the limit of 128000", LONG),
    # A filter refuses the prompts of these cases.
    ("azure_openai", 400, AZURE_FILTER, FILTER),
    ("azure_openai", 400, openai("Filtered.", None, None, innererror={"code": "ResponsibleAIPolicyViolation"}), FILTER),
    (
        "openai",
        400,
        openai("Your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"),
        FILTER,
    ),
    ("openai", 400, openai("Your request was rejected by our safety system.", "moderation_blocked"), FILTER),
    ("openai", 400, openai("No.", "content_policy_violation"), FILTER),
    ("anthropic", 400, anthropic("Output blocked by content filtering policy"), FILTER),
    (
        "bedrock",
        400,
        {"message": "The model returned the following errors: Output blocked by content filtering policy"},
        FILTER,
    ),
    ("bedrock", 400, {"message": "This request has been blocked by our content filters."}, FILTER),
    ("google", 400, google("The prompt was refused: PROHIBITED_CONTENT"), FILTER),
    ("google_vertex", 400, google("The prompt contains words that violate Google's Responsible AI practices."), FILTER),
    (
        "xai",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Team: 1, Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        FILTER,
    ),
    ("deepseek", 400, openai("Content Exists Risk", "invalid_request_error"), FILTER),
    ("openrouter", 403, OPENROUTER_MODERATION, FILTER),
    ("cohere", 400, {"message": "blocked input: the input was blocked"}, FILTER),
    (
        "zai",
        400,
        {"error": {"code": "1301", "message": "System detected potentially unsafe or sensitive content"}},
        FILTER,
    ),
    (
        "openai_compatible",
        400,
        openai("The request was rejected because it was considered high risk", None, "content_filter"),
        FILTER,
    ),
    (
        "openai_compatible",
        400,
        openai("Input data may contain inappropriate content.", "data_inspection_failed"),
        FILTER,
    ),
    # The accounts of these cases have no money or quota left.
    (
        "openai",
        429,
        openai("You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota"),
        QUOTA,
    ),
    (
        "openai",
        429,
        openai("Your account is not active, please check your billing details.", "billing_not_active"),
        QUOTA,
    ),
    ("openai", 400, openai("Billing hard limit has been reached", "billing_hard_limit_reached"), QUOTA),
    ("anthropic", 400, anthropic("Your credit balance is too low to access the Anthropic API."), QUOTA),
    ("anthropic", 402, anthropic("Pay.", "billing_error"), QUOTA),
    ("google", 429, google("Your prepayment credits are depleted.", "RESOURCE_EXHAUSTED", 429), QUOTA),
    ("deepseek", 402, openai("Insufficient Balance", "invalid_request_error", "unknown_error"), QUOTA),
    (
        "openrouter",
        402,
        {"error": {"code": 402, "message": "This request requires more credits, or fewer max_tokens."}},
        QUOTA,
    ),
    (
        "xai",
        403,
        {"code": "x", "error": "Your team has used all available credits or reached its spending limit."},
        QUOTA,
    ),
    (
        "xai",
        429,
        {"code": "x", "error": "Your team either has used all available credits or reached its limit."},
        QUOTA,
    ),
    ("groq", 400, openai("API access blocked.", "blocked_api_access"), QUOTA),
    ("perplexity", 401, openai("You exceeded your current quota", 401, "insufficient_quota"), QUOTA),
    ("cohere", 429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}, QUOTA),
    ("huggingface", 402, {"error": "You have exceeded your monthly included credits for Inference Providers."}, QUOTA),
    ("fireworks", 412, {"error": "Account a is suspended, possibly due to reaching the monthly spending limit"}, QUOTA),
    ("zai", 429, {"error": {"code": "1113", "message": "Insufficient balance or no resource package."}}, QUOTA),
    ("openai_compatible", 429, openai("Your account is suspended.", None, "exceeded_current_quota_error"), QUOTA),
    ("openai_compatible", 400, openai("Access denied, account in arrears.", "Arrearage"), QUOTA),
    ("cerebras", 402, b"", QUOTA),
    ("bigmodel", 429, {"error": {"code": "1113", "message": "No."}}, QUOTA),
    ("xiaomi_mimo", 421, openai("Moderated.", "421"), FILTER),
    ("openai_compatible", 421, openai("Misdirected.", "421"), REJECTED),
    (
        "minimax",
        200,
        {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        QUOTA,
    ),
    ("minimax", 200, {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}, FILTER),
    ("minimax", 200, {"base_resp": {"status_code": 2013, "status_msg": "context window exceeds limit"}}, LONG),
    # The following texts resemble the others and mean something else.
    (
        "openai",
        429,
        openai("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 3.", "rate_limit_exceeded", "tokens"),
        LIMITED,
    ),
    (
        "openai",
        429,
        openai(
            "Request too large on tokens per min (TPM): Limit 4, Requested 25. The tokens must be reduced.",
            "rate_limit_exceeded",
            "tokens",
        ),
        LIMITED,
    ),
    (
        "groq",
        413,
        openai(
            "Request too large on tokens per minute (TPM): Limit 6, Requested 8, please reduce your message size",
            "rate_limit_exceeded",
            "tokens",
        ),
        LIMITED,
    ),
    (
        "google",
        429,
        google(
            "You exceeded your current quota, please check your plan and billing details.", "RESOURCE_EXHAUSTED", 429
        ),
        LIMITED,
    ),
    (
        "google_vertex",
        429,
        google("Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED", 429),
        LIMITED,
    ),
    (
        "anthropic",
        429,
        anthropic(
            "This would exceed the rate limit of 50,000 input tokens per minute. Please reduce the prompt length",
            "rate_limit_error",
        ),
        LIMITED,
    ),
    ("bedrock", 429, {"message": "Too many tokens, please wait before trying again."}, LIMITED),
    (
        "mistral",
        429,
        {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": "1300"},
        LIMITED,
    ),
    ("mistral", 400, {"object": "error", "message": "m", "type": "invalid_request", "code": "1301"}, REJECTED),
    (
        "openai",
        400,
        openai("Invalid 'messages[0].name': string too long. Expected at most 64.", "string_above_max_length"),
        REJECTED,
    ),
    (
        "openai",
        400,
        openai(
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", "invalid_value"
        ),
        REJECTED,
    ),
    (
        "anthropic",
        400,
        anthropic("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens"),
        REJECTED,
    ),
    ("anthropic", 400, anthropic("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"), REJECTED),
    ("bedrock", 400, {"message": "The maximum tokens you requested exceeds the model limit of 4096."}, REJECTED),
    ("openai_compatible", 400, "Range of max_tokens should be [1, 8192]", REJECTED),
    ("openai", 400, "Invalid schema for response_format 'context length'", REJECTED),
    ("openai", 401, openai("Incorrect API key provided", "invalid_api_key"), REFUSED),
    ("openai", 403, openai("Your request was blocked."), REFUSED),
    (
        "openai",
        404,
        openai("The model `context_length_exceeded` does not exist", "model_not_found"),
        FailureKind.NOT_FOUND,
    ),
]


def api_key_invalid(message: str) -> dict[str, Any]:
    """Returns Google's answer to a wrong or expired key
    (https://cloud.google.com/apis/docs/reference/rpc/google.api#errorreason)."""
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    return google(message, "INVALID_ARGUMENT", 400, {**reason, "domain": "googleapis.com"})


XAI_KEY = "Incorrect API key provided: xa***q1. You can obtain an API key from https://console.x.ai."
XAI = {"code": "Client specified an invalid argument", "error": XAI_KEY}

# Vendors do not accept the credential, whatever status they say it with.
KEY_CASES: list[tuple[str, int, Any]] = [
    ("google", 400, api_key_invalid("API key not valid. Please pass a valid API key.")),
    ("google", 400, api_key_invalid("API key expired. Please renew the API key.")),
    ("google", 400, [api_key_invalid("API Key not found. Please pass a valid API key.")]),
    ("google", 400, google("API key not valid. Please pass a valid API key.")),
    ("google", 400, google("API key expired. Please renew the API key.")),
    ("google_vertex", 400, [api_key_invalid("Anything.")]),
    ("google_vertex", 401, google("Request had invalid authentication credentials.", "UNAUTHENTICATED", 401)),
    ("xai", 400, XAI),
    ("xai", 400, XAI_KEY.replace(" ", "%20")),
    ("openai", 400, openai("Incorrect API key provided: sk-a***b.", "invalid_api_key")),
    ("openai", 500, openai("No.", "invalid_api_key")),
    ("openai_compatible", 422, {"detail": "Invalid API key"}),
    ("openai_compatible", 500, {"error": "Your API key has been revoked"}),
    ("anthropic", 400, anthropic("invalid x-api-key", "authentication_error")),
    ("anthropic", 400, anthropic("This organization has been disabled.")),
    (
        "anthropic",
        400,
        anthropic("This credential is only authorized for use with Claude Code and cannot be used for other requests."),
    ),
    ("azure_openai", 400, openai("Access denied due to invalid subscription key or wrong API endpoint.", "400")),
    ("bedrock", 400, {"__type": "com.amazon.coral.service#IncompleteSignatureException", "message": "No."}),
    ("bedrock", 400, {"message": "The security token included in the request is invalid."}),
    ("bedrock", 403, {"__type": "UnrecognizedClientException", "message": "No."}),
    ("bedrock", 400, {"message": "The request signature we calculated does not match the signature you provided."}),
    ("mistral", 400, {"object": "error", "message": "No.", "type": "unauthorized", "code": "1"}),
    ("cohere", 400, {"message": "Invalid API key."}),
    ("dashscope", 400, {"code": "InvalidApiKey", "message": "Invalid API-key provided.", "request_id": "1"}),
    ("volcengine", 400, openai("The API key is not valid.", "AuthenticationError", "Unauthorized")),
    ("moonshot", 400, openai("Invalid Authentication", None, "invalid_authentication_error")),
    ("cerebras", 400, {"message": "Wrong API Key", "type": "invalid_request_error", "code": "wrong_api_key"}),
    ("github", 400, b"bad request: Authorization header is badly formatted"),
    ("huggingface", 400, {"error": "Authorization header is correct, but the token seems invalid"}),
    ("zai", 400, {"error": {"code": "1003", "message": "Authentication Token expired"}}),
    ("bigmodel", 500, {"error": {"code": "1112", "message": "locked"}}),
    ("minimax", 400, {"base_resp": {"status_code": 2049, "status_msg": "invalid api key"}}),
    (
        "cloudflare",
        400,
        {
            "success": False,
            "errors": [
                {
                    "code": 6003,
                    "message": "Invalid request headers",
                    "error_chain": [{"code": 6111, "message": "Invalid format for Authorization header"}],
                }
            ],
        },
    ),
    (
        "openrouter",
        400,
        {
            "error": {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {"raw": '{"error": {"message": "No.", "details": [{"reason": "API_KEY_INVALID"}]}}'},
            }
        },
    ),
]

# These requests mention keys and credentials, and are at fault themselves.
NO_KEY_CASES: list[tuple[str, int, Any]] = [
    ("openai", 400, openai("Invalid schema for function 'log_in': In context=('properties', 'api_key'), no type")),
    ("openai", 400, openai("Missing required parameter: 'tools[0].function.parameters.properties.api_key.type'.")),
    ("openai", 400, openai("Unknown parameter: 'api_key'.", "unknown_parameter")),
    ("openai", 400, openai("Invalid 'metadata.api_key': string too long. Expected at most 512.")),
    ("openai", 400, openai("Invalid value: 'Incorrect API key provided'. Supported values are: 'a' and 'b'.")),
    ("openai", 400, openai("Invalid schema: API key is invalid is no description of an enum")),
    ("openai", 424, openai("Error retrieving tool list from MCP server: 'x'. Http status code: 401 (Unauthorized)")),
    ("openai", 400, openai("Error from the MCP server: bad request: Authorization header is badly formatted")),
    ("anthropic", 400, anthropic("tools.0.input_schema.properties: Invalid API key schema")),
    (
        "anthropic",
        400,
        anthropic("Authentication error while communicating with MCP server. Check your authorization token."),
    ),
    ("google", 400, google("Invalid value at 'tools[0].function_declarations[0].name' (\"api key not valid\")")),
    (
        "openai_compatible",
        422,
        {"detail": [{"type": "missing", "loc": ["body"], "msg": "Required", "input": {"type": "invalid_api_key"}}]},
    ),
    ("bedrock", 400, {"message": "The tool 'check' says: the security token included in the request is invalid"}),
]
