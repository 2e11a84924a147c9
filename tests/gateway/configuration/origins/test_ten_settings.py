"""The ten settings of each origin that its own introduction begins with, each of which has to arrive.

LiteLLM: https://docs.litellm.ai/docs/proxy/configs, TensorZero:
https://www.tensorzero.com/docs/gateway/configuration-reference, Langfuse:
https://langfuse.com/docs/prompt-management/data-model, Helicone:
https://docs.helicone.ai/rest/prompts/post-v1prompt-2025-query-version. None of them publishes how often its settings
are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.configuration.origins import helicone, langfuse, litellm, tensorzero
from gateway.configuration.origins.remaining import Imported
from gateway.configuration.problems import InvalidConfigurationError

FILES = Path(__file__).parent / "files"
TOOL = {"type": "function", "function": {"name": "look_up"}}
SYSTEM = {"role": "system", "content": "Be kind."}
ANSWER = {"role": "user", "content": "{{ question }}"}


class Origin(NamedTuple):
    """A whole file of an origin, how it is read, and where its settings arrive: by their place in the file, the place
    in the project and the value there."""

    read: Callable[[Any], Imported]
    file: Any
    settings: Mapping[str, tuple[str, Any]]


LITELLM = Origin(
    lambda values: litellm.read(values, {"MASTER_KEY": "sk-1234567890abcdef"}),
    {
        "model_list": [
            {
                "model_name": "writer",
                "litellm_params": {
                    "model": "openai/gpt-4o",
                    "api_key": "os.environ/HOUSE_KEY",
                    "api_base": "https://llm.example.com/v1",
                    "rpm": 5,
                    "tpm": 900,
                },
            }
        ],
        "litellm_settings": {"num_retries": 2, "cache": True, "cache_params": {"ttl": 600}},
        "router_settings": {"fallbacks": [{"writer": ["gpt-4.1"]}]},
        "general_settings": {"master_key": "os.environ/MASTER_KEY"},
    },
    {
        "model_list.0.model_name": ("integrations.openai_compatible.models.0.model", "writer"),
        "model_list.0.litellm_params.model": ("integrations.openai_compatible.models.0.deployment", "gpt-4o"),
        "model_list.0.litellm_params.api_key": ("integrations.openai_compatible.api_key", {"env": "HOUSE_KEY"}),
        "model_list.0.litellm_params.api_base": (
            "integrations.openai_compatible.base_url",
            "https://llm.example.com/v1",
        ),
        "model_list.0.litellm_params.rpm": ("integrations.openai_compatible.rpm", 5),
        "model_list.0.litellm_params.tpm": ("integrations.openai_compatible.tpm", 900),
        "litellm_settings.num_retries": ("settings.retry_max_attempts", 3),
        "litellm_settings.cache": ("settings.cache_ttl_seconds", 600),
        "router_settings.fallbacks": ("model_groups.writer.members.1.model", "gpt-4.1"),
        "general_settings.master_key": ("api_keys.litellm-master-key.secret", {"env": "MASTER_KEY"}),
    },
)
_GREET = "prompts.greet.versions.0"
TENSORZERO = Origin(
    lambda values: tensorzero.read(values, FILES, {}),
    {
        "models": {
            "writer": {
                "routing": ["first", "second"],
                "providers": {
                    "first": {"type": "groq", "model_name": "llama-3", "api_key_location": "env::HOUSE_KEY"},
                    "second": {"type": "mistral", "model_name": "small"},
                },
            }
        },
        "functions": {
            "greet": {
                "type": "json",
                "output_schema": "functions/greet/output.json",
                "variants": {
                    "short": {
                        "type": "chat_completion",
                        "model": "writer",
                        "temperature": 0.4,
                        "max_tokens": 100,
                        "templates": {
                            "system": {"path": "functions/greet/short.minijinja"},
                            "user": {"path": "functions/greet/user.minijinja"},
                        },
                    }
                },
            }
        },
    },
    {
        "models.writer.routing": ("model_groups.writer.members.1.model", "mistral/writer"),
        "models.writer.providers.first.type": ("integrations.groq.models.0.model", "writer"),
        "models.writer.providers.first.model_name": ("integrations.groq.models.0.deployment", "llama-3"),
        "models.writer.providers.first.api_key_location": ("integrations.groq.api_key", {"env": "HOUSE_KEY"}),
        "functions.greet.output_schema": (f"{_GREET}.response_format.json_schema.name", "greet"),
        "functions.greet.variants.short.model": (f"{_GREET}.model", "writer"),
        "functions.greet.variants.short.temperature": (f"{_GREET}.temperature", 0.4),
        "functions.greet.variants.short.max_tokens": (f"{_GREET}.max_tokens", 100),
        "functions.greet.variants.short.templates.system.path": (f"{_GREET}.messages.0.role", "system"),
        "functions.greet.variants.short.templates.user.path": (f"{_GREET}.messages.1.role", "user"),
    },
)
_CRITIC = "prompts.critic.versions.1"
LANGFUSE = Origin(
    langfuse.read,
    [
        {
            "name": "critic",
            "version": 7,
            "type": "chat",
            "prompt": [SYSTEM, ANSWER],
            "config": {
                "model": "gpt-4o",
                "temperature": 0.5,
                "max_tokens": 9,
                "tools": [TOOL],
                "response_format": {"type": "json_object"},
            },
            "labels": ["production"],
            "commitMessage": "as a chat",
        },
        {"name": "critic", "version": 3, "type": "text", "prompt": "Be kind."},
    ],
    {
        "0.name": (f"{_CRITIC}.number", 7),
        "0.version": (f"{_CRITIC}.number", 7),
        "0.prompt": (f"{_CRITIC}.messages", [SYSTEM, ANSWER]),
        "0.labels": ("prompts.critic.labels.production", 7),
        "0.commitMessage": (f"{_CRITIC}.commit_message", "as a chat"),
        "0.config.model": (f"{_CRITIC}.model", "gpt-4o"),
        "0.config.temperature": (f"{_CRITIC}.temperature", 0.5),
        "0.config.max_tokens": (f"{_CRITIC}.max_tokens", 9),
        "0.config.tools": (f"{_CRITIC}.tools", [TOOL]),
        "0.config.response_format": (f"{_CRITIC}.response_format", {"type": "json_object"}),
    },
)
_SUPPORT = "prompts.support.versions.1"
HELICONE = Origin(
    helicone.read,
    [
        {
            "name": "support",
            "versions": [
                {
                    "major_version": 1,
                    "minor_version": 2,
                    "commit_message": "shorter",
                    "environments": ["staging"],
                    "prompt_body": {
                        "model": "gpt-4o",
                        "messages": [SYSTEM, {"role": "user", "content": "{{hc:question:string}}"}],
                        "temperature": 0.5,
                        "max_tokens": 9,
                        "tools": [TOOL],
                    },
                },
                {"major_version": 1, "minor_version": 1, "prompt_body": {"messages": [SYSTEM]}},
            ],
        }
    ],
    {
        "0.name": (f"{_SUPPORT}.model", "gpt-4o"),
        "0.versions.0.major_version": (f"{_SUPPORT}.commit_message", "1.2: shorter"),
        "0.versions.0.minor_version": (f"{_SUPPORT}.commit_message", "1.2: shorter"),
        "0.versions.0.commit_message": (f"{_SUPPORT}.commit_message", "1.2: shorter"),
        "0.versions.0.environments": ("prompts.support.labels.staging", 2),
        "0.versions.0.prompt_body.model": (f"{_SUPPORT}.model", "gpt-4o"),
        "0.versions.0.prompt_body.messages": (f"{_SUPPORT}.messages", [SYSTEM, ANSWER]),
        "0.versions.0.prompt_body.temperature": (f"{_SUPPORT}.temperature", 0.5),
        "0.versions.0.prompt_body.max_tokens": (f"{_SUPPORT}.max_tokens", 9),
        "0.versions.0.prompt_body.tools": (f"{_SUPPORT}.tools", [TOOL]),
    },
)
ORIGINS = {"litellm": LITELLM, "tensorzero": TENSORZERO, "langfuse": LANGFUSE, "helicone": HELICONE}
CASES = [(name, place) for name, origin in ORIGINS.items() for place in origin.settings]


def _at(values: Any, place: str) -> Any:
    """Returns the value at a dotted place, None where there is none."""
    for name in place.split("."):
        if isinstance(values, list):
            values = values[int(name)] if int(name) < len(values) else None
        else:
            values = (values or {}).get(name)
    return values


def _without(values: Any, place: str) -> Any:
    left = deepcopy(values)
    holder, _, name = place.rpartition(".")
    del _at(left, holder)[name]
    return left


@pytest.mark.parametrize("name", ORIGINS)
def test_read__ten_settings__are_ten(name: str) -> None:
    assert len(ORIGINS[name].settings) == 10


@pytest.mark.parametrize(("name", "place"), CASES)
def test_read__setting__arrives_and_nothing_else_puts_it_there(name: str, place: str) -> None:
    origin = ORIGINS[name]
    ours, expected = origin.settings[place]
    assert _at(origin.read(origin.file).project, ours) == expected

    try:
        without = origin.read(_without(origin.file, place)).project
    except InvalidConfigurationError as error:
        # The setting is needed, and the sentence says which one.
        assert place in str(error)
        return
    assert _at(without, ours) != expected
