from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from analytics.telemetry import prompt_calls as names
from gateway.errors import PromptConfigNotFoundError
from gateway.pipeline.pin import pinned_version
from gateway.pipeline.variant import allocation_for
from gateway.prompt_fetch.query import PromptQuery
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt, RunningRollout
from gateway.snapshot.store import SnapshotStore
from prompts.errors import VersionNotFoundError
from prompts.selectors import PromptVersionRecord
from rollouts.allocation import Allocation, UnitKind, Variant

_MAX_AGE_SECONDS = 30
_STALE_SECONDS = 300
_STALE_ON_ERROR_SECONDS = 86_400
_KEPT = (
    f"private, max-age={_MAX_AGE_SECONDS}, stale-while-revalidate={_STALE_SECONDS}, "
    f"stale-if-error={_STALE_ON_ERROR_SECONDS}"
).encode()
# A draw of this one fetch is no answer to the next one.
_DRAWN = b"private, no-cache"

_NO_JSON, _NO_LIST = msgspec.Raw(b"null"), msgspec.Raw(b"[]")


class PromptAnswer(msgspec.Struct, frozen=True):
    body: bytes
    etag: bytes
    cache_control: bytes


class _Choice(msgspec.Struct, frozen=True):
    version: PromptVersionRecord
    rollout: RunningRollout | None = None
    allocation: Allocation | None = None


async def prompt_answer(
    snapshots: SnapshotStore, snapshot: ProjectSnapshot, query: PromptQuery, request_id: str
) -> PromptAnswer:
    """Raises PromptConfigNotFoundError, LabelNotFoundError and VersionNotFoundError (404), VariableError (422), and
    ServiceUnavailableError for a version by number that this worker has never read."""
    prompt = snapshot.prompts.get(query.name)
    if prompt is None:
        raise PromptConfigNotFoundError(f"The project has no prompt config named {query.name!r}")
    choice = await _choice(snapshots, prompt, query, request_id)
    body = msgspec.json.encode(_content(prompt, choice, query))
    digest = hashlib.blake2b(body, digest_size=16).hexdigest()
    drawn = choice.allocation is not None and choice.allocation.kind is UnitKind.REQUEST
    return PromptAnswer(body, f'"{digest}"'.encode(), _DRAWN if drawn else _KEPT)


async def _choice(snapshots: SnapshotStore, prompt: ManagedPrompt, query: PromptQuery, request_id: str) -> _Choice:
    if query.label or query.version:
        return _Choice(await pinned_version(snapshots, prompt, query.label or str(query.version)))
    if prompt.active is None:
        raise VersionNotFoundError
    rollout = prompt.rollout
    if rollout is None or rollout.paused:
        return _Choice(prompt.active)
    allocation = allocation_for(rollout, query.user_id, query.session_id, request_id)
    version = rollout.target if allocation.variant is Variant.TARGET else rollout.baseline
    return _Choice(version, rollout, allocation)


def _content(prompt: ManagedPrompt, choice: _Choice, query: PromptQuery) -> dict[str, Any]:
    version = choice.version
    messages = version.messages(query.variables, tolerated=prompt.names)
    return {
        "name": prompt.name,
        "config_id": prompt.config_id,
        "version_id": version.id,
        "version_number": version.number,
        "label": query.label or None,
        "model": version.model,
        "temperature": version.temperature,
        "max_tokens": version.max_tokens,
        "tools": _NO_LIST if version.tools is None else msgspec.Raw(version.tools),
        "response_format": _NO_JSON if version.response_format is None else msgspec.Raw(version.response_format),
        "variables": version.template.variables,
        "messages": messages,
        "system_prompt": next((message["content"] for message in messages if message["role"] == "system"), ""),
        "rendered": query.variables is not None,
        "rollout": _rollout(choice),
        "attributes": _attributes(prompt, choice, query.label),
    }


def _rollout(choice: _Choice) -> dict[str, Any] | None:
    if choice.rollout is None or choice.allocation is None:
        return None
    arm, weight = choice.allocation.variant, choice.rollout.weight
    percent = weight if arm is Variant.TARGET else 100 - weight
    return {"id": choice.rollout.id, "arm": arm.value, "share": percent / 100}


def _attributes(prompt: ManagedPrompt, choice: _Choice, label: str) -> dict[str, str]:
    found = {
        names.PROMPT_NAME: prompt.name,
        names.PROMPT_VERSION: str(choice.version.number),
        names.CONFIG_ID: prompt.config_id,
    }
    if label:
        found[names.LABEL] = label
    if choice.rollout is not None and choice.allocation is not None:
        found |= {
            names.ROLLOUT_ID: choice.rollout.id,
            names.ROLLOUT_STAGE: str(choice.rollout.stage),
            names.VARIANT: choice.allocation.variant.value,
            names.ALLOCATION_UNIT: str(choice.allocation.unit),
            names.ALLOCATION_FALLBACK: "true" if choice.allocation.fallback else "false",
        }
    return found
