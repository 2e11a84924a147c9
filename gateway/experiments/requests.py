from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from gateway.evaluations.stored import schema_of
from gateway.experiments.candidates import Candidate
from gateway.experiments.errors import UnusableItemError
from gateway.experiments.reuse import gets_variables
from gateway.playground.chat import chat_body
from gateway.protocol.wire import AUTO
from gateway.tables.experiment import ExperimentItem
from prompts.models import PromptConfig, PromptVersion
from prompts.selectors import PromptVersionRecord, version_records

# A past request is sent again without its user, since it is not traffic of that user.
_DROPPED = frozenset({"user", "prompt_config", "prompt_variables"})


@dataclass(frozen=True, slots=True)
class CandidateRequest:
    """The request's JSON, its messages as the client sent them, and the version of the managed prompt that its config
    stands for."""

    body: bytes
    messages: list[Any]
    version: PromptVersionRecord | None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        fields = msgspec.json.decode(self.body, type=dict[str, Any])
        if fields.get("response_format") is None and self.version is not None and self.version.response_format:
            fields["response_format"] = msgspec.json.decode(self.version.response_format)
        return schema_of(fields)


def candidate_request(
    project_id: UUID, past: ExperimentItem, given: Mapping[str, Any], candidate: Candidate
) -> CandidateRequest:
    """Raises UnusableItemError, and ValidationError for a body that the gateway would refuse."""
    messages = given["messages"]
    fields = {name: value for name, value in given.items() if name not in _DROPPED}
    name, version = _prompt(project_id, past, candidate)
    if version is not None:
        fields["prompt_config"] = name
        if gets_variables(candidate, past):
            fields["prompt_variables"] = given.get("prompt_variables")
    model = _model(given, fields, candidate)
    if candidate.temperature is not None:
        fields["temperature"] = candidate.temperature
    if candidate.max_tokens is not None:
        fields.pop("max_completion_tokens", None)
        fields["max_tokens"] = candidate.max_tokens
    return CandidateRequest(chat_body(model, fields), messages, version)


def _model(given: Mapping[str, Any], fields: dict[str, Any], candidate: Candidate) -> str:
    """A candidate's model must not be replaced, so fallback models and failover do not apply to it."""
    if not candidate.model:
        model = given.get("model")
        return model if isinstance(model, str) and model else AUTO
    fields.pop("models", None)
    fields["provider"] = {"allow_fallbacks": False}
    return candidate.model


def _prompt(
    project_id: UUID, past: ExperimentItem, candidate: Candidate
) -> tuple[str, PromptVersionRecord] | tuple[str, None]:
    if candidate.version_id:
        version_id = UUID(candidate.version_id)
        config_id = UUID(candidate.prompt_config_id)
    elif past.prompt_config_id is not None and past.prompt_version:
        config_id = past.prompt_config_id
        found = PromptVersion.objects.filter(config_id=config_id, number=past.prompt_version).values_list(
            "pk", flat=True
        )
        version_id = found.first() or UUID(int=0)
    else:
        return "", None
    # The config may have been renamed since the experiment was made, and requests are injected by its present name.
    name = PromptConfig.objects.for_project(project_id).filter(pk=config_id).values_list("name", flat=True).first()
    record = version_records({version_id}).get(version_id)
    if name is None or record is None:
        raise UnusableItemError(
            "The version of the prompt does not exist any more.", of_candidate=bool(candidate.version_id)
        )
    return name, record
