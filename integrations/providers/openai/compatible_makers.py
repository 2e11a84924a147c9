"""Vendors of their own models. The page that a row names documents its entries."""

from __future__ import annotations

from dataclasses import replace

from integrations.providers.openai.dialect import Dialect, History, Search, Thinking

ZAI = Dialect(
    "zai",
    "https://api.z.ai/api/paas/v4",
    title="Z.ai",
    search=Search.REFUSE,
    page="https://docs.z.ai/api-reference/llm/chat-completion",
    owned_by="zai",
    default_model="glm-4.6",
    history=History.KEEP,
    json_schema=False,
    tool_choice=False,
    choices=False,
    max_completion_tokens=False,
    ignores=("logprobs", "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty"),
    parameters=frozenset({"do_sample", "tool_stream", "request_id", "user_id"}),
    prefixes=("glm-",),
    catalogs=("zai", "zai"),
    # Z.ai's model glm-4.5-flash is free: https://docs.z.ai/guides/overview/pricing
    trial_model="glm-4.5-flash",
)

MAKERS = (
    Dialect(
        "moonshot",
        "https://api.moonshot.ai/v1",
        title="Moonshot AI",
        search=Search.REFUSE,
        page="https://platform.moonshot.ai/docs/guide/migrating-from-openai-to-kimi",
        owned_by="moonshotai",
        default_model="kimi-k2.6",
        # Moonshot refuses calls without their reasoning:
        # https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
        history=History.WITH_TOOLS,
        # The vendor refuses both fields together, and its models differ in which of them has an effect:
        # https://platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart
        thinking=Thinking.EITHER,
        toggle_models=("kimi-k2.5", "kimi-k2.6", "kimi-k2.7"),
        effort_models=("kimi-k3",),
        always_thinking=("kimi-k2-thinking", "kimi-k3"),
        parameters=frozenset({"prompt_cache_key", "safety_identifier"}),
        # The sampling of Moonshot's models from K2.5 on is fixed:
        # https://platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart
        reasoning_models=("kimi-k2.5", "kimi-k2.6", "kimi-k2.7", "kimi-k3"),
        sampling_refused=("temperature", "top_p", "presence_penalty", "frequency_penalty"),
        prefixes=("kimi-", "moonshot-v1-"),
        catalogs=("moonshot", "moonshotai"),
        list_needs_key=True,
    ),
    Dialect(
        # The address for Beijing is https://dashscope.aliyuncs.com/compatible-mode/v1, with keys of its own.
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        title="Alibaba Cloud Model Studio",
        search=Search.SWITCH,
        page="https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
        owned_by="alibaba",
        default_model="qwen-plus",
        thinking=Thinking.ENABLE,
        # The marker is documented at https://www.alibabacloud.com/help/en/model-studio/context-cache
        cache_control=True,
        parameters=frozenset(
            {"enable_thinking", "thinking_budget", "enable_search", "search_options", "top_k", "repetition_penalty"}
            | {"vl_high_resolution_images"}
        ),
        catalogs=("dashscope", "alibaba"),
        list_needs_key=True,
        embeddings=10,  # https://help.aliyun.com/zh/model-studio/text-embedding-synchronous-api
        float_embeddings=True,
    ),
    Dialect(
        "minimax",
        "https://api.minimax.io/v1",
        title="MiniMax",
        search=Search.REFUSE,
        page="https://platform.minimax.io/docs/api-reference/text-openai-api",
        owned_by="minimax",
        default_model="MiniMax-M2.5",
        history=History.KEEP,
        reasoning_formats=("MiniMax-",),
        choices=False,
        ignores=("presence_penalty", "frequency_penalty", "logit_bias"),
        parameters=frozenset({"reasoning_split"}),
        prefixes=("MiniMax-",),
        catalogs=("minimax", "minimax"),
        list_needs_key=True,
    ),
    Dialect(
        "volcengine",
        "https://ark.cn-beijing.volces.com/api/v3",
        title="Volcengine Ark",
        page="https://www.volcengine.com/docs/82379/1494384",
        owned_by="bytedance",
        default_model="doubao-seed-2-1-pro-260915",
        parameters=frozenset({"service_tier"}),
        variables=("ARK_API_KEY", "VOLCENGINE_API_KEY"),
        prefixes=("doubao-",),
        catalogs=("volcengine", ""),
        embeddings=256,  # https://www.volcengine.com/docs/82379/1302003
    ),
    # The vendor's address for China, with keys of its own.
    replace(
        ZAI,
        provider="bigmodel",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        title="BigModel",
        page="https://docs.bigmodel.cn/cn/guide/develop/openai/introduction",
        variables=("ZHIPU_API_KEY",),
        catalogs=("bigmodel", "zhipuai"),
        trial_model="",
        embeddings=64,  # https://docs.bigmodel.cn/cn/guide/models/embedding/embedding-3
        float_embeddings=True,
    ),
    Dialect(
        "stepfun",
        "https://api.stepfun.com/v1",
        title="StepFun",
        page="https://platform.stepfun.com/docs/zh/api-reference/chat/chat-completion-create",
        owned_by="stepfun",
        default_model="step-3.5-flash",
        prefixes=("step-",),
        catalogs=("", "stepfun"),
        list_needs_key=True,
    ),
    Dialect(
        "upstage",
        "https://api.upstage.ai/v1",
        title="Upstage",
        page="https://developers.upstage.ai/docs/apis/chat",
        owned_by="upstage",
        default_model="solar-pro3",
        thinking=Thinking.EFFORT,
        effort_models=("solar-pro",),
        prefixes=("solar-",),
        catalogs=("", "upstage"),
        embeddings=100,  # https://console.upstage.ai/docs/capabilities/embeddings
        float_embeddings=True,
    ),
    Dialect(
        "xiaomi_mimo",
        "https://api.xiaomimimo.com/v1",
        title="Xiaomi MiMo",
        page="https://platform.xiaomimimo.com/#/docs",
        owned_by="xiaomi",
        default_model="mimo-v2.5",
        history=History.WITH_TOOLS,
        variables=("XIAOMI_API_KEY",),
        prefixes=("mimo-",),
        catalogs=("xiaomi_mimo", "xiaomi"),
    ),
    Dialect(
        "inception",
        "https://api.inceptionlabs.ai/v1",
        title="Inception",
        page="https://platform.inceptionlabs.ai/docs",
        owned_by="inception",
        default_model="mercury-2",
        prefixes=("mercury-",),
        catalogs=("inception", "inception"),
    ),
    Dialect(
        "morph",
        "https://api.morphllm.com/v1",
        title="Morph",
        page="https://docs.morphllm.com/api-reference/introduction",
        owned_by="morph",
        default_model="morph-v3-fast",
        prefixes=("morph-",),
        catalogs=("morph", "morph"),
        # https://docs.morphllm.com/api-reference/endpoint/batches-create
        operations=("batches",),
        embeddings=2048,  # https://docs.morphllm.com/api-reference/endpoint/embedding
    ),
    Dialect(
        "v0",
        "https://api.v0.dev/v1",
        title="v0",
        page="https://v0.dev/docs/api/model",
        owned_by="vercel",
        default_model="v0-1.5-md",
        prefixes=("v0-",),
        catalogs=("v0", "v0"),
    ),
    Dialect(
        "meta_llama",
        "https://api.llama.com/compat/v1",
        title="Meta Llama API",
        page="https://llama.developer.meta.com/docs/features/compatibility",
        owned_by="meta",
        default_model="Llama-3.3-70B-Instruct",
        variables=("LLAMA_API_KEY",),
        catalogs=("meta_llama", "llama"),
    ),
    Dialect(
        "amazon_nova",
        "https://api.nova.amazon.com/v1",
        title="Amazon Nova",
        page="https://nova.amazon.com/dev/documentation",
        owned_by="amazon",
        default_model="nova-2-lite-v1",
        variables=("NOVA_API_KEY",),
        prefixes=("nova-",),
        catalogs=("", "nova"),
    ),
)
