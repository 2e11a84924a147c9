from __future__ import annotations

from hashlib import blake2b

import msgspec

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.common.completion import ParsedChoice, tool_call, whole
from integrations.providers.errors import unusable
from integrations.providers.google.failures import google_failure_in_body
from integrations.providers.google.finish import (
    FILTERED,
    finish_reason,
    is_blocked,
    read_logprobs,
    read_usage,
    seconds_of,
    unusable_end,
    with_searches,
)
from integrations.providers.google.parts import Call, Choice, Image, Own, Text, Thought, annotations_of
from integrations.providers.google.shapes import Candidate, PromptFeedback, Response, decode, has, plain
from integrations.providers.google.specifics import PARTS
from integrations.providers.usage import Usage

NO_ANSWER = "the provider gave no candidate and no reason"


def parse_response(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    try:
        response = decode(body)
        feedback = response.feedback()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not of the form expected", provider) from error
    if has(response.error):
        raise google_failure_in_body(msgspec.json.decode(body), provider=provider)
    usage = read_usage(response.usage_metadata)
    choices = _choices(response, seed_of(response, body))
    if not choices and not is_blocked(feedback):
        raise unusable(NO_ANSWER, provider, usage=usage)
    answers = [_answer(candidate, choice) for candidate, choice in choices]
    for _, choice in choices:
        if failure := unusable_end(choice, provider=provider, usage=usage):
            raise failure
    if not answers:
        usage = usage or Usage()  # No model has read the prompt, so nothing was used.
        answers = [blocked_answer(feedback)]
    if has(response.prompt_feedback):
        answers[0].specific["promptFeedback"] = plain(response.prompt_feedback)
    usage = with_searches(usage, [choice.grounding for _, choice in choices], request.model)
    return whole(
        answers,
        completion_id=completion_id(response, body),
        model=response.model_version or request.model,
        usage=usage,
        created=seconds_of(response.create_time),
    )


def seed_of(response: Response, body: bytes) -> str:
    return response.response_id or blake2b(body, digest_size=12).hexdigest()


def completion_id(response: Response, body: bytes) -> str:
    return response.response_id or "chatcmpl-" + seed_of(response, body)


def blocked_answer(feedback: PromptFeedback | None) -> ParsedChoice:
    message = (feedback.block_reason_message if feedback else None) or ""
    return ParsedChoice(content="", finish_reason=FILTERED, refusal=message)


def indexes_of(candidates: list[Candidate]) -> list[int]:
    """Protocol buffers omit a zero; if all indexes are missing, the places count."""
    if all(candidate.index is None for candidate in candidates):
        return list(range(len(candidates)))
    return [candidate.index or 0 for candidate in candidates]


def _choices(response: Response, seed: str) -> list[tuple[Candidate, Choice]]:
    candidates = response.candidates or []
    ordered = sorted(zip(indexes_of(candidates), candidates, strict=True), key=lambda entry: entry[0])
    return [(candidate, Choice(position, seed)) for position, (_, candidate) in enumerate(ordered)]


def _answer(candidate: Candidate, choice: Choice) -> ParsedChoice:
    answer = ParsedChoice()
    images, own = [], []
    for piece in choice.read(candidate):
        match piece:
            case Thought():
                answer.reasoning += piece.text
                answer.reasoning_details += piece.details
            case Call():
                answer.tool_calls.append(tool_call(piece.id, piece.name, piece.arguments, **piece.extra))
            case Image():
                images.append(piece.entry)
            case Own():
                own.append(piece.entry)
            case Text():
                pass  # The choice itself keeps such a piece.
    text = "".join(choice.text)
    answer.content = text if text or not choice.calls else None
    answer.finish_reason = finish_reason(choice.finished, called_tools=choice.calls > 0)
    if answer.finish_reason == FILTERED and not text:
        answer.refusal = choice.message
    answer.annotations = annotations_of(choice)
    answer.logprobs = read_logprobs(candidate.logprobs_result)
    answer.specific = {**({PARTS: own} if own else {}), **choice.specific()}
    if images:
        answer.extra = {"images": images}
    return answer
