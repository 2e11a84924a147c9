from __future__ import annotations

from typing import Annotated, Any, NotRequired

from msgspec import Meta
from typing_extensions import TypedDict

from core.openapi.document import KEY_SECURITY, REQUEST_ID, STAFF
from core.openapi.handwritten import failures, optional_parameter
from core.openapi.shapes import reference
from gateway.prompt_fetch.query import MAX_ID_CHARACTERS
from gateway.prompt_fetch.shapes import FetchedPrompt
from prompts.models import NAME_CHARACTERS

_PROMPTS = "/api/llm/prompts"
_PROMPT = "/api/llm/prompts/{name}"
_RENDER = "/api/llm/prompts/{name}/render"
_JSON = "application/json"
_SECURITY = [*KEY_SECURITY, {STAFF: [], "projectId": []}]

_Id = Annotated[str, Meta(max_length=MAX_ID_CHARACTERS)]
_DESCRIPTION = """\
Without `label` and `version` it is the active version, or the one to which the running rollout allocates the user or
the session. The answer comes from the worker's memory, also while no store can be reached. The scopes `prompts:read`,
`gateway` and `manage` open it."""
_OTHERWISE = {
    403: "The key has none of the scopes `prompts:read`, `gateway` and `manage` (`scope_missing`).",
    404: "`prompt_config_not_found`, `prompt_label_not_found`, or `prompt_version_not_found`.",
    405: "`method_not_allowed`.",
    408: "`request_timeout`: the body did not arrive in time.",
}


class RenderRequest(TypedDict):
    label: NotRequired[Annotated[str, Meta(max_length=NAME_CHARACTERS)] | None]
    version: NotRequired[Annotated[int, Meta(ge=1)] | None]
    variables: NotRequired[dict[str, Any] | None]
    user_id: NotRequired[_Id | None]
    session_id: NotRequired[_Id | None]
    project_id: NotRequired[str | None]


def add_prompts(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    result["paths"][_PROMPTS] = {"get": _get_by_query()}
    result["paths"][_PROMPT] = {"get": _get()}
    result["paths"][_RENDER] = {"post": _post()}
    return result


def _get() -> dict[str, Any]:
    parameters = [
        _query("label", "The version to which a label points.", maxLength=NAME_CHARACTERS),
        _query("version", "The number of a version.", type="integer", minimum=1),
        _query("render", "Fills the variables in.", type="boolean", default=False),
        _query("variables", "A JSON object of values by the variable's name; asks for `render`."),
        _query("user_id", "The user for whom a rollout decides.", maxLength=MAX_ID_CHARACTERS),
        _query("session_id", "The session for which a rollout decides.", maxLength=MAX_ID_CHARACTERS),
        _query("project_id", "The project of the header.", format="uuid"),
        optional_parameter("If-None-Match", "The `ETag` of an answer that the client has."),
    ]
    answers = {
        "200": _prompt(),
        "304": {"description": "The client has this answer.", "headers": REQUEST_ID},
        **failures((400, 401, 403, 404, 405, 406, 409, 422, 500, 503), _OTHERWISE),
    }
    return {
        "operationId": "getPrompt",
        "summary": "Fetch a prompt for an application",
        "description": _DESCRIPTION,
        "tags": ["prompts"],
        "security": _SECURITY,
        "parameters": [_name(), *parameters],
        "responses": answers,
    }


def _get_by_query() -> dict[str, Any]:
    by_path = _get()
    return {
        **by_path,
        "operationId": "getPromptByName",
        "summary": "Fetch a prompt whose name is no path",
        "description": f"The same as the fetch by path, for names that a path cannot hold. {_DESCRIPTION}",
        "parameters": [{**_name(), "in": "query"}, *by_path["parameters"][1:]],
    }


def _post() -> dict[str, Any]:
    return {
        "operationId": "renderPrompt",
        "summary": "Fetch a prompt with its variables filled in",
        "description": "The same as the fetch with `render`, for values that are too long or too private for a URL.",
        "tags": ["prompts"],
        "security": _SECURITY,
        "parameters": [_name()],
        "requestBody": {"required": False, "content": {_JSON: {"schema": reference(RenderRequest)}}},
        "responses": {
            "200": _prompt(),
            **failures((400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 422, 500, 503), _OTHERWISE),
        },
    }


def _prompt() -> dict[str, Any]:
    headers = {
        "ETag": {"description": "Names this answer.", "schema": {"type": "string"}},
        "Cache-Control": {"description": "How long the client may keep it.", "schema": {"type": "string"}},
    }
    return {
        "description": "The prompt.",
        "headers": REQUEST_ID | headers,
        "content": {_JSON: {"schema": reference(FetchedPrompt)}},
    }


def _name() -> dict[str, Any]:
    return {
        "name": "name",
        "in": "path",
        "required": True,
        "description": "The name of the prompt config, slashes included.",
        "schema": {"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS},
    }


def _query(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return optional_parameter(name, description, "query", **schema)
