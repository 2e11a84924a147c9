"""Services that run models of many makers. The page that a row names documents its entries."""

from __future__ import annotations

from integrations.providers.openai.dialect import ANY_FORMAT, Dialect, History, Search, Thinking

# Nearly all hosts of open models run vLLM or SGLang, which know `top_k`, `min_p` and `repetition_penalty` beside
# OpenAI's parameters.
_SERVER_PARAMETERS = frozenset({"top_k", "min_p", "repetition_penalty"})
_OPENAI_REASONING = ("o1", "o3", "o4", "gpt-5", "gpt-oss")

HOSTS = (
    Dialect(
        "nvidia",
        "https://integrate.api.nvidia.com/v1",
        title="NVIDIA NIM",
        search=Search.REFUSE,
        page="https://docs.api.nvidia.com/nim/reference/llm-apis",
        default_model="meta/llama-3.3-70b-instruct",
        parameters=_SERVER_PARAMETERS | {"nvext", "chat_template_kwargs"},
        catalogs=("", "nvidia"),
        host_rank=8,
        embeddings=2048,  # https://docs.nvidia.com/nim/nemo-retriever/text-embedding/latest/reference.html
    ),
    Dialect(
        "sambanova",
        "https://api.sambanova.ai/v1",
        title="SambaNova",
        search=Search.REFUSE,
        page="https://docs.sambanova.ai/docs/en/features/openai-compatibility",
        default_model="Meta-Llama-3.3-70B-Instruct",
        ignores=("presence_penalty", "frequency_penalty", "logit_bias"),
        parameters=frozenset({"top_k", "chat_template_kwargs"}),
        catalogs=("sambanova", ""),
        embeddings=2048,  # https://docs.sambanova.ai/cloud/docs/capabilities/embeddings
        float_embeddings=True,
    ),
    Dialect(
        # The address has the form https://<workspace>/serving-endpoints
        "databricks",
        "",
        title="Databricks",
        page="https://docs.databricks.com/aws/en/machine-learning/foundation-model-apis/api-reference",
        default_model="databricks-claude-sonnet-4-5",
        # Databricks takes cache markers for Claude:
        # https://docs.databricks.com/aws/en/machine-learning/model-serving/query-chat-models
        cache_control=True,
        parameters=frozenset({"top_k"}),
        variables=("DATABRICKS_TOKEN",),
        prefixes=("databricks-",),
        catalogs=("databricks", "databricks"),
        embeddings=150,  # https://docs.databricks.com/aws/en/machine-learning/model-serving/query-embedding-models
        float_embeddings=True,
    ),
    Dialect(
        "github",
        "https://models.github.ai/inference",
        title="GitHub Models",
        page="https://docs.github.com/en/rest/models/inference",
        default_model="openai/gpt-4o-mini",
        thinking=Thinking.EFFORT,
        effort_models=_OPENAI_REASONING,
        history=History.DROP,
        developer_role=True,
        system_anywhere=True,
        parameters=frozenset({"modalities"}),
        catalogs=("", "github-models"),
        embeddings=2048,  # https://docs.github.com/en/rest/models/embeddings
        variables=(),
    ),
    Dialect(
        "deepinfra",
        "https://api.deepinfra.com/v1/openai",
        title="DeepInfra",
        search=Search.REFUSE,
        page="https://deepinfra.com/docs/advanced/openai_api",
        default_model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
        parameters=_SERVER_PARAMETERS,
        catalogs=("deepinfra", "deepinfra"),
        host_rank=1,
        # https://deepinfra.com/docs/openai_api
        operations=("completions", "images"),
        embeddings=1024,  # https://deepinfra.com/docs/advanced/embeddings
    ),
    Dialect(
        "novita",
        "https://api.novita.ai/openai",
        title="Novita AI",
        page="https://novita.ai/docs/guides/llm-api",
        default_model="meta-llama/llama-3.3-70b-instruct",
        parameters=_SERVER_PARAMETERS | {"separate_reasoning", "enable_thinking"},
        catalogs=("novita", "novita-ai"),
        host_rank=2,
        operations=("completions",),
        embeddings=2048,  # https://novita.ai/docs/api-reference/model-apis-llm-create-embeddings
    ),
    Dialect(
        "nebius",
        "https://api.tokenfactory.nebius.com/v1",
        title="Nebius",
        page="https://docs.tokenfactory.nebius.com/quickstart",
        default_model="meta-llama/Llama-3.3-70B-Instruct",
        parameters=_SERVER_PARAMETERS,
        catalogs=("nebius", "nebius"),
        list_needs_key=True,
        host_rank=3,
        # https://docs.studio.nebius.com
        operations=("completions", "images"),
        embeddings=2048,  # https://docs.studio.nebius.com/inference/embeddings
    ),
    Dialect(
        "hyperbolic",
        "https://api.hyperbolic.xyz/v1",
        title="Hyperbolic",
        page="https://docs.hyperbolic.xyz/docs/rest-api",
        default_model="meta-llama/Llama-3.3-70B-Instruct",
        parameters=_SERVER_PARAMETERS,
        catalogs=("hyperbolic", ""),
        host_rank=4,
        operations=("completions",),
    ),
    Dialect(
        "baseten",
        "https://inference.baseten.co/v1",
        title="Baseten",
        page="https://docs.baseten.co/inference/model-apis/overview",
        default_model="openai/gpt-oss-120b",
        parameters=_SERVER_PARAMETERS,
        catalogs=("baseten", "baseten"),
        host_rank=5,
    ),
    Dialect(
        "friendliai",
        "https://api.friendli.ai/serverless/v1",
        title="FriendliAI",
        page="https://friendli.ai/docs/openapi/serverless/chat-completions",
        default_model="zai-org/GLM-5.1",
        parameters=_SERVER_PARAMETERS | {"chat_template_kwargs", "parse_reasoning", "include_reasoning"},
        variables=("FRIENDLI_TOKEN",),
        catalogs=("friendliai", "friendli"),
        host_rank=6,
    ),
    Dialect(
        "featherless_ai",
        "https://api.featherless.ai/v1",
        title="Featherless AI",
        page="https://featherless.ai/docs/quickstart-guide",
        default_model="Qwen/Qwen2.5-7B-Instruct",
        parameters=_SERVER_PARAMETERS,
        variables=("FEATHERLESS_API_KEY",),
        catalogs=("featherless_ai", ""),
    ),
    Dialect(
        "nscale",
        "https://inference.api.nscale.com/v1",
        title="Nscale",
        page="https://docs.nscale.com/docs/inference/chat",
        default_model="meta-llama/Llama-3.3-70B-Instruct",
        catalogs=("nscale", ""),
    ),
    Dialect(
        "gradient_ai",
        "https://inference.do-ai.run/v1",
        title="DigitalOcean Gradient",
        page="https://docs.digitalocean.com/products/gradient-ai-platform/how-to/use-serverless-inference/",
        default_model="llama3.3-70b-instruct",
        variables=("GRADIENT_MODEL_ACCESS_KEY",),
        catalogs=("gradient_ai", "digitalocean"),
        list_needs_key=True,
    ),
    Dialect(
        # The address has the form https://api.cloudflare.com/client/v4/accounts/<account>/ai/v1
        "cloudflare",
        "",
        title="Cloudflare Workers AI",
        page="https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility/",
        default_model="@cf/meta/llama-3.3-70b-instruct-fp8-fast",
        prefixes=("@cf/",),
        catalogs=("cloudflare", "cloudflare-workers-ai"),
        embeddings=100,  # https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility/
        float_embeddings=True,
    ),
    Dialect(
        "ovhcloud",
        "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
        title="OVHcloud",
        page="https://help.ovhcloud.com/csm/en-public-cloud-ai-endpoints-getting-started",
        default_model="gpt-oss-120b",
        catalogs=("ovhcloud", "ovhcloud"),
        embeddings=2048,  # https://endpoints.ai.cloud.ovh.net
    ),
    Dialect(
        "scaleway",
        "https://api.scaleway.ai/v1",
        title="Scaleway",
        page="https://www.scaleway.com/en/docs/generative-apis/api-cli/using-chat-api/",
        default_model="llama-3.3-70b-instruct",
        catalogs=("scaleway", "scaleway"),
        list_needs_key=True,
        embeddings=2048,  # https://www.scaleway.com/en/docs/generative-apis/how-to/query-embedding-models/
    ),
    Dialect(
        "wandb",
        "https://api.inference.wandb.ai/v1",
        title="W&B Inference",
        page="https://docs.wandb.ai/guides/inference/",
        default_model="openai/gpt-oss-120b",
        catalogs=("wandb", "wandb"),
        host_rank=9,
        variables=(),
    ),
    Dialect(
        "siliconflow",
        "https://api.siliconflow.com/v1",
        title="SiliconFlow",
        page="https://docs.siliconflow.com/en/api-reference/chat-completions/chat-completions",
        default_model="Qwen/Qwen2.5-72B-Instruct",
        thinking=Thinking.ENABLE,
        parameters=_SERVER_PARAMETERS | {"enable_thinking", "thinking_budget"},
        catalogs=("", "siliconflow"),
        list_needs_key=True,
        host_rank=7,
        # https://docs.siliconflow.cn/cn/api-reference/batch/create-batch
        # https://docs.siliconflow.com/en/api-reference/rerank/create-rerank
        operations=("rerank", "batches"),
        embeddings=32,  # https://docs.siliconflow.com/en/api-reference/embeddings/create-embeddings
    ),
    Dialect(
        "gmi",
        "https://api.gmi-serving.com/v1",
        title="GMI Cloud",
        page="https://docs.gmicloud.ai/inference-engine/api-reference/llm-api-reference",
        default_model="deepseek-ai/DeepSeek-V3.2",
        variables=("GMICLOUD_API_KEY",),
        catalogs=("gmi", "gmicloud"),
        host_rank=10,
    ),
    Dialect(
        "chutes",
        "https://llm.chutes.ai/v1",
        title="Chutes",
        page="https://llm.chutes.ai/v1/models",
        default_model="Qwen/Qwen3-32B-TEE",
        parameters=_SERVER_PARAMETERS,
        catalogs=("", "chutes"),
    ),
    Dialect(
        "io_net",
        "https://api.intelligence.io.solutions/api/v1",
        title="io.net",
        page="https://io.net/docs/guides/intelligence/io-intelligence",
        default_model="meta-llama/Llama-3.3-70B-Instruct",
        variables=("IOINTELLIGENCE_API_KEY",),
        catalogs=("", "io-net"),
    ),
    # The following rows are routers, which serve other vendors' models behind one address.
    Dialect(
        "vercel_ai_gateway",
        "https://ai-gateway.vercel.sh/v1",
        title="Vercel AI Gateway",
        page="https://vercel.com/docs/ai-gateway/openai-compat",
        default_model="openai/gpt-4o-mini",
        # Vercel's gateway documents `reasoning` at https://vercel.com/docs/ai-gateway/openai-compat/advanced
        thinking=Thinking.REASONING,
        history=History.KEEP,
        reasoning_formats=ANY_FORMAT,
        parameters=frozenset({"reasoning", "providerOptions"}),
        variables=("AI_GATEWAY_API_KEY",),
        catalogs=("vercel_ai_gateway", "vercel"),
        embeddings=2048,  # https://vercel.com/docs/ai-gateway/openai-compat
    ),
    Dialect(
        "requesty",
        "https://router.requesty.ai/v1",
        title="Requesty",
        page="https://docs.requesty.ai/quickstart",
        default_model="openai/gpt-4o-mini",
        catalogs=("", "requesty"),
    ),
    Dialect(
        "helicone",
        "https://ai-gateway.helicone.ai/v1",
        title="Helicone",
        page="https://docs.helicone.ai/gateway/overview",
        default_model="gpt-4o-mini",
        catalogs=("", "helicone"),
    ),
    Dialect(
        "poe",
        "https://api.poe.com/v1",
        title="Poe",
        page="https://creator.poe.com/docs/external-applications/openai-compatible-api",
        default_model="openai/gpt-4o-mini",
        choices=False,
        catalogs=("", "poe"),
    ),
    Dialect(
        "venice",
        "https://api.venice.ai/api/v1",
        title="Venice",
        page="https://docs.venice.ai/api-reference/endpoint/chat/completions",
        default_model="llama-3.3-70b",
        parameters=_SERVER_PARAMETERS | {"venice_parameters"},
        catalogs=("", "venice"),
        # https://docs.venice.ai/api-reference
        operations=("images",),
        embeddings=2048,  # https://docs.venice.ai/api-reference/endpoint/embeddings/generate
    ),
)
