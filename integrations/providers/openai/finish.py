"""The finish reasons of OpenAI's dialect: OpenAI's five, and the look-alikes' words for them.

A reason that means "no answer" makes it a failure, so that the request can be retried or sent elsewhere.
"""

from __future__ import annotations

from integrations.providers.errors import FailureKind, ProviderError

# Clients know these reasons (https://platform.openai.com/docs/api-reference/chat/object). `function_call` belongs to
# the functions that came before tools.
_KNOWN = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
# The mapping leads from vendors' own words for the reasons, in small letters, to OpenAI's.
_NAMES = {
    "eos": "stop",  # Together sends this finish reason: https://docs.together.ai/reference/chat-completions
    # TGI sends this finish reason: https://huggingface.co/docs/text-generation-inference/basic_tutorials/consuming_tgi
    "eos_token": "stop",
    # xAI (https://docs.x.ai/docs/api-reference#chat-completions) and Claude send this finish reason.
    "end_turn": "stop",
    "end_of_turn": "stop",
    "stop_sequence": "stop",  # TGI and Claude send this finish reason.
    "complete": "stop",  # Cohere sends this finish reason.
    "completed": "stop",
    # vLLM sends this finish reason when the model repeats itself: https://docs.vllm.ai/en/latest/api/vllm/v1/engine/
    "repetition": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",  # Mistral sends this finish reason: https://docs.mistral.ai/api/
    # Z.ai sends this finish reason: https://docs.z.ai/api-reference/llm/chat-completion
    "model_context_window_exceeded": "length",
    "max_length": "length",
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
    "safety": "content_filter",
    "sensitive": "content_filter",  # Z.ai sends this finish reason: https://docs.z.ai/api-reference/llm/chat-completion
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
    "refusal": "content_filter",
    "recitation": "content_filter",
}
# With the following finish reasons the provider gave up in the middle of the answer.
_BROKEN_OFF = frozenset(
    {
        # OpenRouter (https://openrouter.ai/docs/api-reference/errors), Mistral (https://docs.mistral.ai/api/) and vLLM
        # send this finish reason.
        "error",
        "network_error",  # Z.ai sends this finish reason: https://docs.z.ai/api-reference/llm/chat-completion
        # DeepSeek sends this finish reason: https://api-docs.deepseek.com/api/create-chat-completion
        "insufficient_system_resource",
        "abort",  # vLLM (https://docs.vllm.ai/en/latest/api/vllm/v1/engine/) and SGLang send this finish reason.
        "aborted",
        "cancelled",
        "timeout",
    }
)
# With the following reasons of Gemini and Bedrock, which routers pass on, the model wrote output that cannot be read.
_MALFORMED = frozenset(
    {
        "malformed_function_call",
        "malformed_tool_use",
        "malformed_model_output",
        "unexpected_tool_call",
        "too_many_tool_calls",
        "missing_thought_signature",
        "other",
    }
)


def finish_reason(reason: object, *, called_tools: bool) -> str:
    """An unknown reason becomes `stop`, and the answer is kept. A stop after tool calls becomes `tool_calls`."""
    name = reason if isinstance(reason, str) else "stop"
    if name not in _KNOWN:
        name = _NAMES.get(name.lower(), "stop")
    return "tool_calls" if called_tools and name == "stop" else name


def failure_of(reason: object, provider: str, *, has_output: bool) -> ProviderError | None:
    """None for a proper end. An unknown or absent reason ends an answer with content; without content (`has_output`) it
    is a failure."""
    name = reason.lower() if isinstance(reason, str) else ""
    if name in _BROKEN_OFF:
        return _failure(f"{provider} broke the answer off: {reason}", FailureKind.UNAVAILABLE, provider)
    if name in _MALFORMED:
        return _failure(f"{provider} ended the answer as {reason}", FailureKind.UNUSABLE, provider)
    if has_output or name in _KNOWN or name in _NAMES:
        return None
    problem = f"for a reason that is not known: {reason}" if name else "without a reason"
    return _failure(f"{provider} ended an empty answer {problem}", FailureKind.UNUSABLE, provider)


def _failure(message: str, kind: FailureKind, provider: str) -> ProviderError:
    return ProviderError(message, kind=kind, provider=provider, status=200, is_failed_generation=True)
