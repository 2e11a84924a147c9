"""Managed prompts in the requests of plans (docs/prompts.md).

The stage `prompt` itself chooses a request's version and injects it; what all requests with the same version share is
worked out once.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from gateway.pipeline.context import RequestContext, RequestState
from gateway.pipeline.pin import is_pinned
from gateway.pipeline.plan.plans import Plan
from gateway.pipeline.plan.shown import sample_body, sample_state, shown_of
from gateway.pipeline.prompt import with_prompt
from gateway.protocol.wire import ChatCompletionRequest, LazyFields

# A project may have many prompts, and clients choose among them and the models.
_MAX_USES = 500


class Asked(NamedTuple):
    request: ChatCompletionRequest
    chat: bytes
    body: bytes


def prompted(plan: Plan, state: RequestState, asked: Asked) -> tuple[Plan | None, Asked]:
    """Returns the request with the managed prompt that it names, and the plan of all that get the same version.

    The plan is None if a version has to be found or filled in first, or chooses the model. Raises the stage's
    ApplicationError.
    """
    request = asked.request
    context = RequestContext(state.snapshot, state.headers, asked.chat, request, LazyFields(asked.chat))
    if request.prompt_variables is not None or is_pinned(context):
        return None, asked
    made = with_prompt(context, state)
    changed = made.request
    if changed.model != request.model:
        return None, asked
    if changed.prompt_config is not None:
        if not state.prompt.version:
            return None, asked  # Its body still has the field.
        changed = replace(changed, prompt_config=None)
    return _plan_of(plan, state, changed), Asked(changed, made.body, made.body)


def _plan_of(plan: Plan, state: RequestState, changed: ChatCompletionRequest) -> Plan | None:
    use, known = state.prompt, plan.of_prompts
    name = use.name, use.version, use.variant, state.warnings, tuple(state.attributes.items())
    if name not in known:
        if len(known) >= _MAX_USES:
            known.clear()
        known[name] = _with_use(plan, state, changed)
    return known[name]


def _with_use(plan: Plan, state: RequestState, changed: ChatCompletionRequest) -> Plan | None:
    sample = sample_state(plan.snapshot, plan.key, plan.surface, sample_body(plan.sent_model))
    sample.prompt, sample.warnings, sample.attributes = state.prompt, state.warnings, state.attributes
    shown = shown_of(sample, plan.attempt, plan.record.requested_model, is_native=plan.is_native)
    if shown is None:
        return None
    # A prompt may have what no client's request of plain form has.
    is_plain = all(message.role != "developer" for message in changed.messages)
    marks = plan.marks_in_plain if is_plain else plan.marks
    return plan._replace(record=shown.record, served=shown.served, last=shown.last, marks_in_plain=marks)
