from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.wire.fields import NameListField, NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer
from gateway.protocol.wire import MAX_MESSAGES, nested_too_deeply

MAX_MODELS = 5
_MODEL_CHARACTERS = 512
_SEARCH_CHARACTERS = 200
_SESSION_CHARACTERS = 1024
_LAST_VERSION = 2**31 - 1


def _number(help_text: str, lowest: float, highest: float) -> NumberField:
    return NumberField(required=False, allow_null=True, min_value=lowest, max_value=highest, help_text=help_text)


def _tokens(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=1_000_000, help_text=help_text
    )


def _json(help_text: str) -> serializers.JSONField:
    return serializers.JSONField(required=False, allow_null=True, help_text=help_text)


@extend_schema_field({"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": MAX_MESSAGES})
class MessagesField(serializers.ListField):
    """A list of messages; `gateway.protocol.wire` checks their number, with the gateway's own error message."""


class MessageField(serializers.JSONField):
    """Any JSON object: a message's fields are the provider's to check, beyond the checks of `gateway.protocol.wire`."""

    default_error_messages = {"not_an_object": "Must be an object."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        return super().to_internal_value(data)


class _ChatSerializer(BodySerializer):
    """The fields of a chat completion; `gateway.protocol.wire` checks their values."""

    messages = MessagesField(
        child=MessageField(), help_text="As of a chat completion: at most 1000 messages of at most 1 MB."
    )
    temperature = _number("0 to 2.", 0, 2)
    max_tokens = _tokens("The most tokens that the answer may have.")
    max_completion_tokens = _tokens("The same, reasoning included.")
    top_p = _number("0 to 1.", 0, 1)
    stop = _json("A text or texts at which the answer ends.")
    frequency_penalty = _number("-2 to 2.", -2, 2)
    presence_penalty = _number("-2 to 2.", -2, 2)
    user = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, help_text="The end user; for sticky rollouts."
    )
    seed = _json("An integer.")
    tools = _json("Tool definitions.")
    tool_choice = _json("none, auto, required or a specific function.")
    response_format = _json("type is text, json_object or json_schema.")
    thinking = _json("type and budget_tokens.")
    reasoning_effort = serializers.CharField(required=False, allow_null=True, help_text="low, medium or high.")
    models = _json("At most 5 models to fall back to.")
    provider = _json("order, only, ignore, allow_fallbacks, sort.")
    prompt_config = serializers.CharField(required=False, allow_null=True, help_text="The name of a prompt config.")
    prompt_version = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=_LAST_VERSION,
        help_text="The number of the version of prompt_config to try, whichever is active or rolled out.",
    )
    prompt_variables = _json("Values for the variables of the prompt, by name.")
    session_id = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=_SESSION_CHARACTERS,
        help_text="The session that the requests are listed under.",
    )
    auto_evaluate = serializers.BooleanField(
        required=False, default=False, help_text="Whether the project's judge_model scores the answer."
    )


class PlaygroundSerializer(_ChatSerializer):
    model = serializers.CharField(max_length=_MODEL_CHARACTERS, help_text="A model or auto.")
    stream = serializers.BooleanField(
        required=False, default=False, help_text="Whether the answer comes as server-sent events, the result last."
    )


class CompareSerializer(_ChatSerializer):
    compare_models = NameListField(
        child=serializers.CharField(max_length=_MODEL_CHARACTERS),
        min_length=1,
        max_length=MAX_MODELS,
        help_text="Up to 5 different models.",
    )


class ModelParameters(Parameters):
    search = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=_SEARCH_CHARACTERS,
        help_text="Words that have to stand in the name, in any letter case.",
    )


def validated(serializer: type[_ChatSerializer], data: Any) -> dict[str, Any]:
    """Raises DRF's ValidationError, or the gateway's for data that is nested too deeply."""
    given = serializer(data=data)
    try:
        given.is_valid(raise_exception=True)
    except RecursionError:
        raise nested_too_deeply() from None
    found: dict[str, Any] = given.validated_data
    return found
