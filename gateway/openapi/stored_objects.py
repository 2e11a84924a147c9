from __future__ import annotations

from typing import Any, Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

from core.openapi.document import REQUEST_ID
from core.openapi.failures import ErrorBody
from core.openapi.handwritten import failures, optional_parameter
from core.openapi.operations import JSON
from core.openapi.shapes import reference
from gateway.openapi.parts import FAILURES, SECURITY, MessagesErrorBody, response_headers
from gateway.protocol.headers import PROVIDER

_ROOT = "/api/gateway/v1"
_FORM = "multipart/form-data"
_CONTENT = "application/octet-stream"
_LINES = "application/x-jsonl"
_OPENAI = "https://platform.openai.com/docs/api-reference"
_ANTHROPIC = "https://platform.claude.com/docs/en/api"


class StoredFile(TypedDict):
    id: str
    object: NotRequired[str]
    bytes: NotRequired[int]
    filename: NotRequired[str]
    purpose: NotRequired[str]


class FileList(TypedDict):
    object: Literal["list"]
    data: list[StoredFile]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedFile(TypedDict):
    id: str
    deleted: NotRequired[bool]


class NewBatch(TypedDict):
    input_file_id: str
    endpoint: str
    completion_window: NotRequired[str]
    metadata: NotRequired[dict[str, Any] | None]


class Batch(TypedDict):
    id: str
    status: NotRequired[str]
    input_file_id: NotRequired[str]
    output_file_id: NotRequired[str | None]
    error_file_id: NotRequired[str | None]


class BatchList(TypedDict):
    object: Literal["list"]
    data: list[Batch]
    first_id: str | None
    last_id: str | None
    has_more: bool


class BatchedMessage(TypedDict):
    custom_id: str
    params: dict[str, Any]


class NewMessageBatch(TypedDict):
    requests: list[BatchedMessage]


class MessageBatch(TypedDict):
    id: str
    processing_status: NotRequired[str]
    results_url: NotRequired[str | None]


class MessageBatchList(TypedDict):
    data: list[MessageBatch]
    has_more: bool
    first_id: str | None
    last_id: str | None


class DeletedMessageBatch(TypedDict):
    id: str


class _Call(NamedTuple):
    path: str
    method: str
    id: str
    summary: str
    answer: dict[str, Any]
    body: dict[str, Any] | None = None
    query: tuple[str, ...] = ()
    description: str = "Passed on to the provider that keeps it; its answer comes back as it came."


def _json(shape: Any) -> dict[str, Any]:
    return {JSON: {"schema": reference(shape)}}


def _bytes(*media_types: str) -> dict[str, Any]:
    return {name: {"schema": {"type": "string", "contentMediaType": name}} for name in media_types}


_UPLOAD = {
    _FORM: {
        "schema": {
            "type": "object",
            "properties": {
                "file": {"type": "string", "format": "binary"},
                "purpose": {"type": "string", "description": "`batch` has each line checked."},
            },
            "required": ["file", "purpose"],
        }
    }
}
_PRICED = "The first call that reads all of them records each line with its cost, at the price of batches."
_OWN = "Those of the project alone, from what the gateway remembers. What has not ended is asked for anew."
_BEGUN = "A budget that is used up begins none."
_CHECKED = f"A broken line is refused by its number, before anything leaves. {_BEGUN}"
_FILES, _FILE = f"{_ROOT}/files", f"{_ROOT}/files/{{id}}"
_BATCHES, _BATCH = f"{_ROOT}/batches", f"{_ROOT}/batches/{{id}}"
_MESSAGES, _MESSAGE = f"{_ROOT}/messages/batches", f"{_ROOT}/messages/batches/{{id}}"
_PAGE = ("after", "limit")
_CALLS = (
    _Call(_FILES, "post", "uploadFile", "Upload a file", _json(StoredFile), _UPLOAD, (), _CHECKED),
    _Call(_FILES, "get", "listFiles", "List files", _json(FileList), None, (*_PAGE, "purpose"), _OWN),
    _Call(_FILE, "get", "getFile", "Show a file", _json(StoredFile)),
    _Call(_FILE, "delete", "deleteFile", "Delete a file", _json(DeletedFile)),
    _Call(f"{_FILE}/content", "get", "getFileContent", "Read a file", _bytes(_CONTENT, _LINES), description=_PRICED),
    _Call(_BATCHES, "post", "createBatch", "Create a batch", _json(Batch), _json(NewBatch), (), _BEGUN),
    _Call(_BATCHES, "get", "listBatches", "List batches", _json(BatchList), None, _PAGE, _OWN),
    _Call(_BATCH, "get", "getBatch", "Show a batch", _json(Batch)),
    _Call(f"{_BATCH}/cancel", "post", "cancelBatch", "Cancel a batch", _json(Batch)),
    _Call(
        _MESSAGES,
        "post",
        "createMessageBatch",
        "Create a message batch",
        _json(MessageBatch),
        _json(NewMessageBatch),
        (),
        f"A broken request is refused by its place, before anything leaves. {_BEGUN}",
    ),
    _Call(
        _MESSAGES,
        "get",
        "listMessageBatches",
        "List message batches",
        _json(MessageBatchList),
        None,
        ("after_id", "before_id", "limit"),
        _OWN,
    ),
    _Call(_MESSAGE, "get", "getMessageBatch", "Show a message batch", _json(MessageBatch)),
    _Call(_MESSAGE, "delete", "deleteMessageBatch", "Delete a message batch", _json(DeletedMessageBatch)),
    _Call(
        f"{_MESSAGE}/results",
        "get",
        "getMessageBatchResults",
        "Read the results of a message batch",
        _bytes(_LINES, _CONTENT),
        description=_PRICED,
    ),
    _Call(f"{_MESSAGE}/cancel", "post", "cancelMessageBatch", "Cancel a message batch", _json(MessageBatch)),
)
_QUERIES = {
    "after": "The id that the page follows.",
    "after_id": "The id that the page follows.",
    "before_id": "The id that the page precedes.",
    "limit": "The length of the page.",
    "purpose": "Only files of this purpose.",
}
_STATUSES = (400, 401, 403, 404, 405, 408, 413, 429, 500, 503)
_OTHERWISE = {404: "`not_found_error`: the project has no such file or batch.", 413: "`body_too_large`."}


def stored_objects() -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = {}
    for call in _CALLS:
        paths.setdefault(call.path, {})[call.method] = _described(call)
    return paths


def _described(call: _Call) -> dict[str, Any]:
    is_anthropic = call.path.startswith(_MESSAGES)
    vendor = f"{_ANTHROPIC}/creating-message-batches" if is_anthropic else f"{_OPENAI}/batch"
    parameters = [optional_parameter(name, _QUERIES[name], "query") for name in call.query]
    if "{id}" in call.path:
        parameters.insert(0, {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}})
        parameters[0]["description"] = "The provider's own id."
    if call.body is not None:
        text = "The provider or the integration that keeps it; by default the first one that has the API."
        parameters.append(optional_parameter(PROVIDER.decode(), text))
    described = {
        "operationId": call.id,
        "summary": call.summary,
        "description": call.description,
        "externalDocs": {"description": "All fields, in the vendor's own words.", "url": vendor},
        "tags": ["gateway"],
        "security": SECURITY,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The provider's answer.",
                "headers": REQUEST_ID | response_headers(prompts=False),
                "content": call.answer,
            },
            **failures(_STATUSES, {**FAILURES, **_OTHERWISE}, (MessagesErrorBody if is_anthropic else ErrorBody,)),
        },
    }
    return described if call.body is None else {**described, "requestBody": {"required": True, "content": call.body}}
