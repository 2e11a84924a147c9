from __future__ import annotations

from typing import Any

from core.openapi.document import REQUEST_ID
from core.openapi.failures import ErrorBody
from core.openapi.handwritten import failures, optional_parameter
from core.openapi.operations import JSON
from core.openapi.shapes import any_of, reference
from gateway.openapi.answers import AnthropicModel, AnthropicModelList, GoogleModel, GoogleModelList
from gateway.openapi.parts import FAILURES, SECURITY, GoogleErrorBody, MessagesErrorBody
from gateway.protocol.completion_shapes import Model, ModelList

MODELS = "/api/gateway/v1/models"
GEMINI_MODELS = "/api/gateway/v1beta/models"
_ERRORS = (ErrorBody, MessagesErrorBody, GoogleErrorBody)
_ANTHROPIC = (
    "With the header `anthropic-version` the answer has the form of Anthropic's API, errors included, and with"
    " `x-goog-api-key` that of Google's."
)


def models() -> dict[str, Any]:
    answer = {
        "description": "OpenAI's list with fields of the gateway's own, Anthropic's, or Google's.",
        "content": {JSON: {"schema": any_of(ModelList, AnthropicModelList, GoogleModelList)}},
    }
    return {
        "operationId": "listModels",
        "summary": "List the models that can be called",
        "description": f"`prefixes` are the supported prefixes of model names. {_ANTHROPIC}",
        "tags": ["gateway"],
        "security": SECURITY,
        "parameters": [optional_parameter("anthropic-version", "Asks for the form of Anthropic's API.")],
        "responses": {
            "200": {**answer, "headers": REQUEST_ID},
            **failures((400, 401, 403, 405, 503), FAILURES, _ERRORS),
        },
    }


def gemini_models() -> dict[str, Any]:
    answer = {
        "description": "Google's list, whole.",
        "content": {JSON: {"schema": reference(GoogleModelList)}},
    }
    return {
        "operationId": "listGeminiModels",
        "summary": "List the models in the form of Google's Gemini API",
        "tags": ["gateway"],
        "security": SECURITY,
        "responses": {
            "200": {**answer, "headers": REQUEST_ID},
            **failures((400, 401, 403, 405, 503), FAILURES, (GoogleErrorBody,)),
        },
    }


def gemini_model() -> dict[str, Any]:
    name = {"name": "model", "in": "path", "required": True, "description": "Its id, slashes included."}
    answer = {"description": "The model.", "content": {JSON: {"schema": reference(GoogleModel)}}}
    return {
        **gemini_models(),
        "operationId": "getGeminiModel",
        "summary": "Describe a model in the form of Google's Gemini API",
        "parameters": [{**name, "schema": {"type": "string"}}],
        "responses": {
            "200": {**answer, "headers": REQUEST_ID},
            **failures((400, 401, 403, 404, 405, 503), FAILURES, (GoogleErrorBody,)),
        },
    }


def model() -> dict[str, Any]:
    name = {"name": "model", "in": "path", "required": True, "description": "Its id, slashes included."}
    answer = {"description": "The model.", "content": {JSON: {"schema": any_of(Model, AnthropicModel, GoogleModel)}}}
    described = models()
    return {
        **described,
        "operationId": "getModel",
        "summary": "Describe a model that can be called",
        "description": _ANTHROPIC,
        "parameters": [{**name, "schema": {"type": "string"}}, *described["parameters"]],
        "responses": {
            "200": {**answer, "headers": REQUEST_ID},
            **failures((400, 401, 403, 404, 405, 503), FAILURES, _ERRORS),
        },
    }
