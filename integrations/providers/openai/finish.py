"""The finish reasons of OpenAI's dialect: OpenAI's five, and the words of look-alikes for them.

What a vendor says of an answer that is none makes the answer a failure: it may be asked for again, or from another.
"""

from __future__ import annotations

from integrations.providers.errors import FailureKind, ProviderError

# The reasons that clients know (https://platform.openai.com/docs/api-reference/chat/object). `function_call` goes with
# the functions that came before tools.
_KNOWN = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
# Vendors' own words for them, in small letters.
_NAMES = {
    "eos": "stop",  # https://docs.together.ai/reference/chat-completions
    "eos_token": "stop",  # https://huggingface.co/docs/text-generation-inference/basic_tutorials/consuming_tgi
    "end_turn": "stop",  # https://docs.x.ai/docs/api-reference#chat-completions, and Claude's word
    "end_of_turn": "stop",
    "stop_sequence": "stop",  # TGI's and Claude's
    "complete": "stop",  # Cohere's
    "completed": "stop",
    "repetition": "stop",  # https://docs.vllm.ai/en/latest/api/vllm/v1/engine/: the model repeated itself
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",  # https://docs.mistral.ai/api/
    "model_context_window_exceeded": "length",  # https://docs.z.ai/api-reference/llm/chat-completion
    "max_length": "length",
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
    "safety": "content_filter",
    "sensitive": "content_filter",  # https://docs.z.ai/api-reference/llm/chat-completion
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
    "refusal": "content_filter",
    "recitation": "content_filter",
}
# The provider gave up in the midst of it.
_BROKEN_OFF = frozenset(
    {
        "error",  # https://openrouter.ai/docs/api-reference/errors, https://docs.mistral.ai/api/, and vLLM's
        "network_error",  # https://docs.z.ai/api-reference/llm/chat-completion
        "insufficient_system_resource",  # https://api-docs.deepseek.com/api/create-chat-completion
        "abort",  # https://docs.vllm.ai/en/latest/api/vllm/v1/engine/, and SGLang's
        "aborted",
        "cancelled",
        "timeout",
    }
)
# The model wrote what cannot be read: Gemini's and Bedrock's words, which routers pass on.
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
    """The reason in the wire format's words; a word that nobody knows is a stop, since what was said is kept. A stop
    after tool calls is `tool_calls`, whatever the vendor says."""
    name = reason if isinstance(reason, str) else "stop"
    if name not in _KNOWN:
        name = _NAMES.get(name.lower(), "stop")
    return "tool_calls" if called_tools and name == "stop" else name


def failure_of(reason: object, provider: str, *, said: bool) -> ProviderError | None:
    """The failure that this reason tells of, None for a proper end. `said`: something of the answer is there.

    A word that nobody knows, and none at all, are ends of what was said; where nothing was, there is no answer.
    """
    name = reason.lower() if isinstance(reason, str) else ""
    if name in _BROKEN_OFF:
        return _failure(f"{provider} broke the answer off: {reason}", FailureKind.UNAVAILABLE, provider)
    if name in _MALFORMED:
        return _failure(f"{provider} ended the answer as {reason}", FailureKind.UNUSABLE, provider)
    if said or name in _KNOWN or name in _NAMES:
        return None
    told = f"for a reason that is not known: {reason}" if name else "without a reason"
    return _failure(f"{provider} ended an empty answer {told}", FailureKind.UNUSABLE, provider)


def _failure(message: str, kind: FailureKind, provider: str) -> ProviderError:
    return ProviderError(message, kind=kind, provider=provider, status=200, is_botched=True)
