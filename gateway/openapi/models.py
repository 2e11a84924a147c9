"""The list of models in the OpenAPI document, in OpenAI's form or in Anthropic's."""

from __future__ import annotations

from typing import Any

from core.openapi.document import REQUEST_ID
from core.openapi.failures import ErrorBody
from core.openapi.handwritten import failures, optional_parameter
from core.openapi.operations import JSON
from core.openapi.shapes import any_of
from gateway.openapi.answers import AnthropicModel, AnthropicModelList
from gateway.openapi.parts import FAILURES, SECURITY, MessagesErrorBody
from gateway.protocol.completion_shapes import Model, ModelList

MODELS = "/api/gateway/v1/models"
_ERRORS = (ErrorBody, MessagesErrorBody)
_ANTHROPIC = "With the header `anthropic-version` the answer has the form of Anthropic's API, errors included."


def models() -> dict[str, Any]:
    answer = {
        "description": "OpenAI's list with fields of the gateway's own, or Anthropic's.",
        "content": {JSON: {"schema": any_of(ModelList, AnthropicModelList)}},
    }
    return {
        "operationId": "listModels",
        "summary": "List the models that can be called",
        "description": f"`prefixes` are the supported prefixes of model names. {_ANTHROPIC}",
        "tags": ["gateway"],
        "security": SECURITY,
        "parameters": [optional_parameter("anthropic-version", "Asks for the form of Anthropic's API.")],
        "responses": {"200": {**answer, "headers": REQUEST_ID}, **failures((401, 403, 405, 503), FAILURES, _ERRORS)},
    }


def model() -> dict[str, Any]:
    name = {"name": "model", "in": "path", "required": True, "description": "Its id, slashes included."}
    answer = {"description": "The model.", "content": {JSON: {"schema": any_of(Model, AnthropicModel)}}}
    described = models()
    return {
        **described,
        "operationId": "getModel",
        "summary": "Describe a model that can be called",
        "description": _ANTHROPIC,
        "parameters": [{**name, "schema": {"type": "string"}}, *described["parameters"]],
        "responses": {
            "200": {**answer, "headers": REQUEST_ID},
            **failures((401, 403, 404, 405, 503), FAILURES, _ERRORS),
        },
    }
