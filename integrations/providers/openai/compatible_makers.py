"""Rows of `compatible.py` for vendors of their own models. The page that a row names documents its entries."""

from __future__ import annotations

from integrations.providers.openai.dialect import Dialect, History, Search, Thinking

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
        parameters=frozenset({"prompt_cache_key", "safety_identifier"}),
        # The sampling of Moonshot's models from K2.5 on is fixed:
        # https://platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart
        reasoning_models=("kimi-k2.5", "kimi-k2.6", "kimi-k2.7", "kimi-k3"),
        sampling_refused=("temperature", "top_p", "presence_penalty", "frequency_penalty"),
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
    ),
    Dialect(
        "volcengine",
        "https://ark.cn-beijing.volces.com/api/v3",
        title="Volcengine Ark",
        page="https://www.volcengine.com/docs/82379/1494384",
        owned_by="bytedance",
        default_model="doubao-seed-2-1-pro-260915",
        parameters=frozenset({"service_tier"}),
    ),
    Dialect(
        # The vendor is that of zai, for China, with other keys and the same dialect.
        "bigmodel",
        "https://open.bigmodel.cn/api/paas/v4",
        title="BigModel",
        search=Search.REFUSE,
        page="https://docs.bigmodel.cn/cn/guide/develop/openai/introduction",
        owned_by="zai",
        default_model="glm-4.6",
        history=History.KEEP,
        json_schema=False,
        tool_choice=False,
        choices=False,
        max_completion_tokens=False,
        ignores=("logprobs", "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty"),
        parameters=frozenset({"do_sample", "tool_stream", "request_id", "user_id"}),
    ),
    Dialect(
        "stepfun",
        "https://api.stepfun.com/v1",
        title="StepFun",
        page="https://platform.stepfun.com/docs/zh/api-reference/chat/chat-completion-create",
        owned_by="stepfun",
        default_model="step-3.5-flash",
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
    ),
    Dialect(
        "xiaomi_mimo",
        "https://api.xiaomimimo.com/v1",
        title="Xiaomi MiMo",
        page="https://platform.xiaomimimo.com/#/docs",
        owned_by="xiaomi",
        default_model="mimo-v2.5",
        history=History.WITH_TOOLS,
    ),
    Dialect(
        "inception",
        "https://api.inceptionlabs.ai/v1",
        title="Inception",
        page="https://platform.inceptionlabs.ai/docs",
        owned_by="inception",
        default_model="mercury-2",
    ),
    Dialect(
        "morph",
        "https://api.morphllm.com/v1",
        title="Morph",
        page="https://docs.morphllm.com/api-reference/introduction",
        owned_by="morph",
        default_model="morph-v3-fast",
    ),
    Dialect(
        "v0",
        "https://api.v0.dev/v1",
        title="v0",
        page="https://v0.dev/docs/api/model",
        owned_by="vercel",
        default_model="v0-1.5-md",
    ),
    Dialect(
        "meta_llama",
        "https://api.llama.com/compat/v1",
        title="Meta Llama API",
        page="https://llama.developer.meta.com/docs/features/compatibility",
        owned_by="meta",
        default_model="Llama-3.3-70B-Instruct",
    ),
    Dialect(
        "amazon_nova",
        "https://api.nova.amazon.com/v1",
        title="Amazon Nova",
        page="https://nova.amazon.com/dev/documentation",
        owned_by="amazon",
        default_model="nova-2-lite-v1",
    ),
)
