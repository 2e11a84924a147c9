from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from integrations.providers.base import Traits


class Documents(StrEnum):
    PASS = "pass"  # noqa: S105 - not a password: the part goes out as it is, the server's model decides
    # The document is a `file` part with the data URL inside; a document with an address is fetched.
    FILE_DATA = "file_data"
    FILE_URL = "file_url"  # The document is a `file` part with a data URL or an address.
    PLAIN = "plain"  # The document is `document_url` as a bare string (Mistral).
    SONAR = "sonar"  # The document is Perplexity's `file_url` part: an address or bare base64.
    REFUSE = "refuse"


class Images(StrEnum):
    URL = "url"  # The image is an address or a data URL.
    DATA_ONLY = "data_only"  # The image is a data URL; one with an address is fetched.
    REFUSE = "refuse"


class Thinking(StrEnum):
    PASS = "pass"  # noqa: S105 - not a password: the field is known there, or ignored
    EFFORT = "effort"  # `thinking` becomes `reasoning_effort`, for models in `effort_models`.
    REASONING = "reasoning"  # `thinking` becomes OpenRouter's `reasoning` object.
    REASONING_EFFORT = "reasoning_effort"  # `thinking` becomes Snowflake's `reasoning` object, which takes a level.
    ENABLE = "enable"  # `thinking` becomes `enable_thinking` and `thinking_budget` (Alibaba, SiliconFlow).
    # `thinking` becomes Together's `reasoning` object for models in `toggle_models`, `reasoning_effort` for others.
    TOGGLE = "toggle"
    # `thinking` alone for models in `toggle_models`, `reasoning_effort` alone for those in `effort_models` (Moonshot).
    EITHER = "either"
    DROP = "drop"  # The provider does not know the field and refuses it.


class Search(StrEnum):
    PASS = "pass"  # noqa: S105 - not a password: the field is known there, or the server's to judge
    SWITCH = "switch"  # `web_search_options` becomes Alibaba's `enable_search`.
    REFUSE = "refuse"  # The provider does not know the field, and would answer from memory, so the request is refused.


class History(StrEnum):
    PASS = "pass"  # noqa: S105 - not a password: not documented; stays, but is left out of a fallback
    KEEP = "keep"
    # The provider reads `reasoning`, of which older or other versions of it know only the other name.
    BOTH = "both"
    # The provider requires the field beside tool calls and ignores it elsewhere, where a fallback leaves it out.
    WITH_TOOLS = "with_tools"
    # `reasoning_content` becomes `reasoning` for models in `reasoning_models`; other models refuse it.
    RENAME = "rename"
    DROP = "drop"  # The provider does not know the field and refuses it.


ANY_FORMAT = ("*",)

# Practically every provider of the dialect knows the common parameters; a fallback carries over no others.
COMMON_PARAMETERS = frozenset(
    {
        "model", "messages", "stream", "stream_options", "temperature", "top_p", "max_tokens", "max_completion_tokens",
        "stop", "n", "seed", "presence_penalty", "frequency_penalty", "tools", "tool_choice", "parallel_tool_calls",
        "response_format", "logprobs", "top_logprobs", "logit_bias", "user", "reasoning_effort", "thinking",
    }
)  # fmt: skip
# Only OpenAI and Azure know a further set of parameters (https://platform.openai.com/docs/api-reference/chat/create).
OPENAI_PARAMETERS = frozenset(
    {
        "audio", "modalities", "prediction", "store", "metadata", "service_tier", "verbosity", "web_search_options",
        "functions", "function_call", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "moderation",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect(Traits):
    """A provider that speaks OpenAI's dialect: its address and its differences, which the vendor's `page` documents.

    `reasoning_formats`: the `reasoning_details` that it takes back; None: undocumented, they stay except on a fallback;
    empty: none, neither its own nor another vendor's. `effort_models`: prefixes of the models that take a level as
    `reasoning_effort`: `low`, `medium` and `high`, or those that `efforts` lists for the first prefix that fits;
    `optional_models` take `none`; those of `always_thinking` cannot have it switched off. `drops`: parameters that it
    refuses; `ignores`: those without effect, which a direct request keeps. `parameters`: those that it takes beside the
    common ones, for use on a fallback. `sampling_refused`: parameters that the models in `reasoning_models` refuse.
    `responses_models`: prefixes of the models that get tools with reasoning by the Responses API if the client leaves
    that to the gateway (`responses_adapter.py`).

    The last fields say how the rest of the product knows the provider. `variables`: the environment variables of its
    key, the first that is set counts, by default `<PROVIDER>_API_KEY`; its address is in `<PROVIDER>_BASE_URL`. If they
    are empty, no integration is made from the environment. `prefixes`: how the names of its own models begin.
    `catalogs`: its names in the catalogs A and B of prices. `host_rank`: its rank among the hosts for open models of
    any vendor, from 1; 0 means never. `list_needs_key`: the list of models is documented to need a key, which therefore
    tests one; other keys are tested with one token of `trial_model` or else the default model. `operations`: those of
    `integrations.providers.native`, and `batches`, that it documents beside chat completions. `embeddings`: the most
    inputs of one request for embeddings; 0 for a provider without embeddings or with its own form. `float_embeddings`:
    it documents no `encoding_format`, or only `float`.
    """

    page: str = ""
    documents: Documents = Documents.REFUSE
    images: Images = Images.URL
    thinking: Thinking = Thinking.PASS
    effort_models: tuple[str, ...] = ()
    optional_models: tuple[str, ...] = ()
    efforts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    toggle_models: tuple[str, ...] = ()
    always_thinking: tuple[str, ...] = ()
    history: History = History.PASS
    search: Search = Search.PASS
    reasoning_formats: tuple[str, ...] | None = ()
    cache_control: bool = False  # The provider takes Anthropic's marker.
    cache_breakpoint: bool = False  # The provider takes OpenAI's own marker.
    # The provider takes images in tool results; elsewhere they follow in a message of the user. What a server of an
    # unknown kind takes, its own clients know, but not those of another protocol.
    tool_media: bool = False
    stream_options: bool = True
    message_names: bool = True  # False means that the provider refuses `name` in a message.
    developer_role: bool = False  # A provider without this role gets `developer` messages as `system`.
    # The provider takes instructions in mid-conversation, and several at the beginning. The chat templates of many open
    # models refuse both: https://github.com/vllm-project/vllm/issues/41114
    system_anywhere: bool = False
    # False means that the provider ignores every value but `auto`; for `none` the tools are left out.
    tool_choice: bool = True
    choices: bool = True  # False means that the provider gives one answer for a request.
    max_completion_tokens: bool = True  # False means that the provider knows the limit as `max_tokens` only.
    drops: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    parameters: frozenset[str] = frozenset()
    reasoning_models: tuple[str, ...] = ()
    sampling_refused: tuple[str, ...] = ()
    responses_models: tuple[str, ...] = ()
    variables: tuple[str, ...] | None = None
    prefixes: tuple[str, ...] = ()
    catalogs: tuple[str, str] = ("", "")
    host_rank: int = 0
    list_needs_key: bool = False
    trial_model: str = ""
    operations: tuple[str, ...] = ()
    embeddings: int = 0
    float_embeddings: bool = False

    @property
    def key_variables(self) -> tuple[str, ...]:
        return (f"{self.provider.upper()}_API_KEY",) if self.variables is None else self.variables

    @property
    def is_open(self) -> bool:
        """True for a server of an unknown kind, which gets the client's request unchanged."""
        return self.reasoning_formats is None


def is_one_of(model: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the name, with or without the vendor before the last slash, has a prefix of a family of reasoning models.
    OpenAI's `-chat` models belong to such families and do not reason."""
    matches = model.startswith(prefixes) or model.rpartition("/")[2].startswith(prefixes)
    return matches and "-chat" not in model
