"""Providers that speak the OpenAI dialect unchanged, one row each, with the vendors' documented addresses.

The vendor's `page` documents the other entries of a row; without an entry, the provider is taken to be like OpenAI.
"""

from __future__ import annotations

from integrations.providers.openai.adapter import OpenAIAdapter
from integrations.providers.openai.compatible_hosts import HOSTS
from integrations.providers.openai.compatible_makers import MAKERS, ZAI
from integrations.providers.openai.dialect import (
    ANY_FORMAT,
    OPENAI_PARAMETERS,
    Dialect,
    Documents,
    History,
    Images,
    Search,
    Thinking,
)

DIALECTS = (
    Dialect(
        # Groq also documents its reasoning at https://console.groq.com/docs/reasoning
        "groq",
        "https://api.groq.com/openai/v1",
        title="Groq",
        search=Search.REFUSE,
        page="https://console.groq.com/docs/openai",
        default_model="llama-3.3-70b-versatile",
        thinking=Thinking.EFFORT,
        effort_models=("gpt-oss",),
        optional_models=("qwen3",),
        reasoning_models=("gpt-oss", "qwen3"),
        history=History.RENAME,
        message_names=False,
        choices=False,
        drops=("logprobs", "top_logprobs", "logit_bias"),
        parameters=frozenset({"reasoning_format", "include_reasoning", "search_settings", "compound_custom"}),
        catalogs=("groq", "groq"),
        list_needs_key=True,
        # https://console.groq.com/docs/batch
        # https://console.groq.com/docs/text-to-speech
        # https://console.groq.com/docs/speech-to-text
        operations=("speech", "transcriptions", "batches"),
    ),
    Dialect(
        # DeepSeek also documents its thinking at https://api-docs.deepseek.com/guides/thinking_mode
        "deepseek",
        "https://api.deepseek.com/v1",
        title="DeepSeek",
        search=Search.REFUSE,
        page="https://api-docs.deepseek.com/api/create-chat-completion",
        owned_by="deepseek",
        default_model="deepseek-chat",
        images=Images.REFUSE,
        history=History.WITH_TOOLS,
        json_schema=False,
        choices=False,
        max_completion_tokens=False,
        ignores=("logit_bias",),
        reasoning_models=("deepseek-reasoner",),
        sampling_refused=("logprobs", "top_logprobs"),
        prefixes=("deepseek-",),
        catalogs=("deepseek", "deepseek"),
        list_needs_key=True,
    ),
    Dialect(
        "xai",
        "https://api.x.ai/v1",
        title="xAI",
        page="https://docs.x.ai/docs/guides/reasoning",
        owned_by="xai",
        default_model="grok-4",
        options=("responses_models",),
        thinking=Thinking.EFFORT,
        effort_models=("grok-3-mini", "grok-4.3"),
        optional_models=("grok-4.3",),
        history=History.KEEP,
        developer_role=True,
        system_anywhere=True,
        parameters=frozenset({"search_parameters", "deferred"}),
        reasoning_models=("grok-3-mini", "grok-4", "grok-code"),
        sampling_refused=("presence_penalty", "frequency_penalty", "stop", "logit_bias"),
        # Chat completions refuse the model of several agents, and have no place for the reasoning of the others, which
        # a loop of tools loses there: https://docs.x.ai/developers/model-capabilities/text/best-practices
        responses_models=("grok-4.20-multi-agent", "grok-4.3", "grok-4.5"),
        prefixes=("grok-",),
        catalogs=("xai", "xai"),
        list_needs_key=True,
        # https://docs.x.ai/docs/guides/image-generations
        operations=("images",),
    ),
    Dialect(
        # Further pages are https://openrouter.ai/docs/use-cases/reasoning-tokens and
        # https://openrouter.ai/docs/features/prompt-caching
        "openrouter",
        "https://openrouter.ai/api/v1",
        title="OpenRouter",
        page="https://openrouter.ai/docs/features/multimodal/pdfs",
        default_model="openrouter/auto",
        documents=Documents.FILE_URL,
        thinking=Thinking.REASONING,
        history=History.KEEP,
        reasoning_formats=ANY_FORMAT,
        cache_control=True,
        tool_media=True,
        developer_role=True,
        system_anywhere=True,
        parameters=frozenset(
            {"reasoning", "plugins", "transforms", "route", "top_k", "min_p", "top_a", "repetition_penalty"}
            | {"usage", "include_reasoning", "verbosity"}
        ),
        catalogs=("openrouter", "openrouter"),
        list_needs_key=True,
        embeddings=2048,  # https://openrouter.ai/docs/api-reference/embeddings
    ),
    Dialect(
        "together",
        "https://api.together.xyz/v1",
        title="Together AI",
        search=Search.REFUSE,
        page="https://docs.together.ai/docs/inference/chat/reasoning",
        default_model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
        thinking=Thinking.TOGGLE,
        effort_models=("gpt-oss",),
        toggle_models=("deepseek-ai/DeepSeek-V", "zai-org/GLM-", "moonshotai/Kimi-K2.", "Qwen/Qwen3.", "deepcogito/"),
        parameters=frozenset({"reasoning", "top_k", "min_p", "repetition_penalty", "safety_model"}),
        catalogs=("together_ai", "togetherai"),
        list_needs_key=True,
        # https://docs.together.ai/docs/rerank-overview
        # https://docs.together.ai/docs/images-overview
        # https://docs.together.ai/docs/text-to-speech
        # https://docs.together.ai/docs/speech-to-text
        operations=("completions", "rerank", "images", "speech", "transcriptions"),
        embeddings=2048,  # https://docs.together.ai/docs/embeddings-overview
    ),
    Dialect(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        title="Fireworks AI",
        search=Search.REFUSE,
        page="https://docs.fireworks.ai/api-reference/post-chatcompletions",
        default_model="accounts/fireworks/models/llama-v3p3-70b-instruct",
        history=History.KEEP,
        parameters=frozenset({"top_k", "min_p", "repetition_penalty", "prompt_truncate_len", "reasoning_history"}),
        catalogs=("fireworks_ai", "fireworks-ai"),
        list_needs_key=True,
        # https://docs.fireworks.ai/api-reference/rerank-documents
        operations=("completions", "rerank"),
        embeddings=2048,  # https://docs.fireworks.ai/guides/querying-embeddings-models
    ),
    Dialect(
        # Perplexity also documents its files at https://docs.perplexity.ai/guides/file-attachments
        "perplexity",
        "https://api.perplexity.ai",
        title="Perplexity",
        page="https://docs.perplexity.ai/api-reference/chat-completions-post",
        default_model="sonar",
        documents=Documents.SONAR,
        thinking=Thinking.EFFORT,
        effort_models=("sonar-reasoning", "sonar-deep-research"),
        history=History.DROP,
        choices=False,
        max_completion_tokens=False,
        ignores=("logprobs", "top_logprobs", "logit_bias"),
        parameters=frozenset(
            {"top_k", "search_mode", "search_domain_filter", "search_recency_filter", "return_images"}
            | {"return_related_questions", "web_search_options", "disable_search", "language_preference"}
        ),
        variables=("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
        prefixes=("sonar",),
        catalogs=("perplexity", "perplexity"),
    ),
    Dialect(
        # Cerebras also documents its reasoning at https://inference-docs.cerebras.ai/capabilities/reasoning
        "cerebras",
        "https://api.cerebras.ai/v1",
        title="Cerebras",
        search=Search.REFUSE,
        page="https://inference-docs.cerebras.ai/resources/openai",
        default_model="gpt-oss-120b",
        thinking=Thinking.EFFORT,
        effort_models=("gpt-oss", "zai-glm", "qwen-3.8"),
        optional_models=("zai-glm", "qwen-3.8"),
        reasoning_models=("gpt-oss", "zai-glm", "qwen-3"),
        history=History.RENAME,
        choices=False,
        drops=("frequency_penalty", "presence_penalty", "logit_bias"),
        parameters=frozenset({"clear_thinking", "reasoning_format", "disable_reasoning"}),
        catalogs=("cerebras", "cerebras"),
        list_needs_key=True,
        # https://inference-docs.cerebras.ai/capabilities/batch
        operations=("batches",),
    ),
    Dialect(
        "huggingface",
        "https://router.huggingface.co/v1",
        title="Hugging Face",
        page="https://huggingface.co/docs/inference-providers/tasks/chat-completion",
        default_model="meta-llama/Llama-3.3-70B-Instruct",
        variables=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        catalogs=("", "huggingface"),
    ),
    ZAI,
    Dialect(
        "snowflake",
        "",
        title="Snowflake Cortex",
        search=Search.REFUSE,
        page="https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-rest-api",
        default_model="claude-sonnet-4-5",
        thinking=Thinking.REASONING_EFFORT,
        reasoning_formats=("anthropic-claude-v1", "openai-"),
        cache_control=True,
        parameters=frozenset({"reasoning"}),
        variables=("SNOWFLAKE_TOKEN",),
        catalogs=("snowflake", "snowflake-cortex"),
    ),
    *MAKERS,
    *HOSTS,
    Dialect(
        "ollama",
        "http://127.0.0.1:11434/v1",
        title="Ollama",
        search=Search.REFUSE,
        page="https://docs.ollama.com/api/openai-compatibility",
        optional_secret=True,
        images=Images.DATA_ONLY,
        thinking=Thinking.EFFORT,
        effort_models=("",),
        optional_models=("",),
        # Ollama reads `reasoning` alone: https://github.com/ollama/ollama/blob/main/openai/openai.go
        history=History.BOTH,
        tool_choice=False,
        choices=False,
        max_completion_tokens=False,
        ignores=("logit_bias", "user"),
        parameters=frozenset({"reasoning"}),
        operations=("completions",),
        embeddings=2048,  # https://docs.ollama.com/api/openai-compatibility
        list_needs_key=True,
    ),
    # A server of an unknown kind gets the client's request unchanged.
    Dialect(
        "vllm",
        "",
        title="vLLM",
        functions="direct",
        optional_secret=True,
        documents=Documents.PASS,
        # vLLM reads `reasoning` alone since 0.16: https://github.com/vllm-project/vllm/issues/38488
        history=History.BOTH,
        reasoning_formats=None,
        tool_media=True,
        developer_role=True,
        parameters=frozenset({"top_k", "min_p", "repetition_penalty", "chat_template_kwargs", "guided_json"}),
        # https://docs.vllm.ai/en/latest/serving/
        operations=("completions", "rerank"),
        embeddings=2048,  # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
        list_needs_key=True,
    ),
    Dialect(
        "openai_compatible",
        "",
        title="Any OpenAI-compatible server",
        functions="direct",
        optional_secret=True,
        documents=Documents.PASS,
        reasoning_formats=None,
        tool_media=True,
        developer_role=True,
        operations=("completions", "moderations", "rerank", "images", "speech", "transcriptions", "batches"),
        embeddings=2048,
        list_needs_key=True,
    ),
    Dialect(
        "sandbox",
        "",
        title="Sandbox",
        functions="always",
        owned_by="sandbox",
        default_model="echo",
        optional_secret=True,
        documents=Documents.PASS,
        reasoning_formats=None,
        tool_media=True,
        developer_role=True,
        system_anywhere=True,
        parameters=OPENAI_PARAMETERS,
        operations=("rerank",),
        embeddings=2048,
        variables=(),
        list_needs_key=True,
    ),
)

ADAPTERS = {dialect.provider: OpenAIAdapter(dialect) for dialect in DIALECTS}


def adapters_with(operation: str) -> dict[str, OpenAIAdapter]:
    return {dialect.provider: ADAPTERS[dialect.provider] for dialect in DIALECTS if operation in dialect.operations}
