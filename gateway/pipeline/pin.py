"""The version that a request names itself: `name@label`, `name@3` or `name@latest` in place of a prompt's name.

Such a version takes no part in a rollout. Names could once have an `@`: such a prompt is found first.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.pipeline.context import RequestContext, RequestState
from gateway.snapshot.prompts import ManagedPrompt
from gateway.snapshot.store import SnapshotStore
from prompts.errors import LabelNotFoundError, VersionNotFoundError
from prompts.models import LATEST
from prompts.selectors import PromptVersionRecord

_SEPARATOR = "@"
_MAX_DIGITS = 10


def is_pinned(context: RequestContext) -> bool:
    name = context.request.prompt_config or context.headers.prompt_config
    return name is not None and _SEPARATOR in name


def named_prompt(prompts: Mapping[str, ManagedPrompt], name: str) -> ManagedPrompt | None:
    prompt = prompts.get(name)
    if prompt is None and _SEPARATOR in name:
        prompt = prompts.get(name.rpartition(_SEPARATOR)[0])
    return prompt


def split_name(prompts: Mapping[str, ManagedPrompt], name: str) -> tuple[str, str]:
    if name in prompts or _SEPARATOR not in name or name.endswith(_SEPARATOR):
        return name, ""
    prompt, _, reference = name.rpartition(_SEPARATOR)
    return prompt, reference


async def pin(snapshots: SnapshotStore, context: RequestContext, state: RequestState) -> None:
    """Notes in `state.origin` the version that the request names beside an existing prompt.

    Raises LabelNotFoundError and VersionNotFoundError (404), and ServiceUnavailableError if it cannot be read.
    """
    if context.native is not None and context.native.surface.native_only:
        return
    name = context.request.prompt_config or context.headers.prompt_config or ""
    prompts = context.snapshot.prompts
    prompt = named_prompt(prompts, name)
    if prompt is None or name in prompts or state.origin.pinned is not None:
        return
    version = await pinned_version(snapshots, prompt, name.rpartition(_SEPARATOR)[2])
    state.origin = msgspec.structs.replace(state.origin, pinned=version)


async def pinned_version(snapshots: SnapshotStore, prompt: ManagedPrompt, reference: str) -> PromptVersionRecord:
    labelled = prompt.labels.get(reference)
    if labelled is not None:
        return labelled
    if reference == LATEST and prompt.last_version:
        number = prompt.last_version
    elif reference.isascii() and reference.isdecimal() and len(reference) <= _MAX_DIGITS:
        number = int(reference)
    else:
        raise LabelNotFoundError(reference)
    version = await snapshots.prompt_version(prompt, number)
    if version is None:
        raise VersionNotFoundError
    return version
