"""The differences of providers from OpenAI's dialect, as data: one `Dialect` per provider."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from integrations.providers.base import Traits


class Documents(StrEnum):
    """The forms of a document that a provider accepts (`document_url`, the gateway's own part, or `file` with
    data)."""

    PASS = "pass"  # noqa: S105 - not a password: the part goes out as it is, the server's model decides
    FILE_DATA = "file_data"  # a `file` part with the data URL inside; what has an address is fetched
    FILE_URL = "file_url"  # a `file` part, data URL or address
    PLAIN = "plain"  # `document_url` as a bare string (Mistral)
    SONAR = "sonar"  # Perplexity's `file_url` part: an address or bare base64
    REFUSE = "refuse"


class Images(StrEnum):
    """The forms of an image that a provider accepts."""

    URL = "url"  # address or data URL
    DATA_ONLY = "data_only"  # data URL; what has an address is fetched
    REFUSE = "refuse"


class Thinking(StrEnum):
    """The form of the `thinking` field that a provider accepts."""

    PASS = "pass"  # noqa: S105 - not a password: the field is known there, or ignored
    EFFORT = "effort"  # `reasoning_effort`, for models of `effort_models`
    REASONING = "reasoning"  # OpenRouter's `reasoning` object
    REASONING_EFFORT = "reasoning_effort"  # Snowflake's `reasoning` object, which takes a level
    ENABLE = "enable"  # `enable_thinking` and `thinking_budget` (Alibaba, SiliconFlow)
    TOGGLE = "toggle"  # Together's `reasoning` object, for models of `toggle_models`; `reasoning_effort` for others
    DROP = "drop"  # unknown there and refused when sent


class Search(StrEnum):
    """The form of `web_search_options` that a provider accepts."""

    PASS = "pass"  # noqa: S105 - not a password: the field is known there, or the server's to judge
    SWITCH = "switch"  # Alibaba's `enable_search`
    REFUSE = "refuse"  # unknown there: the answer would be from memory


class History(StrEnum):
    """The form of the reasoning text of earlier answers that a provider accepts (`reasoning_content`)."""

    PASS = "pass"  # noqa: S105 - not a password: not documented; stays, but is left out of a fallback
    KEEP = "keep"
    WITH_TOOLS = "with_tools"  # wanted beside tool calls, ignored elsewhere: a fallback leaves it out there
    RENAME = "rename"  # named `reasoning`, for models of `reasoning_models`; refused on others
    DROP = "drop"  # unknown there and refused when sent


ANY_FORMAT = ("*",)

# Parameters that practically every provider of the dialect knows: all that a fallback carries over.
COMMON_PARAMETERS = frozenset(
    {
        "model", "messages", "stream", "stream_options", "temperature", "top_p", "max_tokens", "max_completion_tokens",
        "stop", "n", "seed", "presence_penalty", "frequency_penalty", "tools", "tool_choice", "parallel_tool_calls",
        "response_format", "logprobs", "top_logprobs", "logit_bias", "user", "reasoning_effort", "thinking",
    }
)  # fmt: skip
# Those that only OpenAI and Azure know (https://platform.openai.com/docs/api-reference/chat/create).
OPENAI_PARAMETERS = frozenset(
    {
        "audio", "modalities", "prediction", "store", "metadata", "service_tier", "verbosity", "web_search_options",
        "functions", "function_call", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "moderation",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect(Traits):
    """One provider that speaks the dialect: where it listens and where it differs.

    `page` is the vendor's page that says so. `reasoning_formats`: which `reasoning_details` it takes back; None: not
    documented, they stay but on a fallback; empty: none, as little as any other vendor's state. `effort_models`:
    prefixes of the models that take a level as `reasoning_effort`: `low`, `medium` and `high`, or what `efforts` says
    by prefix, the first that fits; `optional_models` take `none`. `drops`: parameters that it refuses; `ignores`: those
    that it takes no notice of, which a direct request keeps. `parameters`: those that it takes beside the common ones,
    for the sake of a fallback. `sampling_refused` are what the models of `reasoning_models` refuse.
    """

    page: str = ""
    documents: Documents = Documents.REFUSE
    images: Images = Images.URL
    thinking: Thinking = Thinking.PASS
    effort_models: tuple[str, ...] = ()
    optional_models: tuple[str, ...] = ()
    efforts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    toggle_models: tuple[str, ...] = ()
    history: History = History.PASS
    search: Search = Search.PASS
    reasoning_formats: tuple[str, ...] | None = ()
    cache_control: bool = False  # takes Anthropic's marker
    cache_breakpoint: bool = False  # takes OpenAI's own
    tool_media: bool = False  # images in tool results; elsewhere they follow in a message of the user
    stream_options: bool = True
    message_names: bool = True  # False: `name` of a message is refused
    developer_role: bool = False  # elsewhere `developer` becomes `system`
    json_schema: bool = True
    tool_choice: bool = True  # False: ignored but for `auto`, and by leaving the tools out `none`
    choices: bool = True  # False: one answer a request
    max_completion_tokens: bool = True  # False: known as `max_tokens` only
    drops: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    parameters: frozenset[str] = frozenset()
    reasoning_models: tuple[str, ...] = ()
    sampling_refused: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Returns True for a server of any kind, which gets the request as the client sent it."""
        return self.reasoning_formats is None


def is_one_of(model: str, prefixes: tuple[str, ...]) -> bool:
    """Returns True when the name, with or without the vendor before the last slash, starts with one of the prefixes,
    which tell families that reason. OpenAI's `-chat` models are in such families and do not."""
    matches = model.startswith(prefixes) or model.rpartition("/")[2].startswith(prefixes)
    return matches and "-chat" not in model
