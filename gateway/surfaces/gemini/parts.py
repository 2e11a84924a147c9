from __future__ import annotations

from typing import Any

import msgspec

from gateway.protocol.message_sizes import check_file_size
from gateway.surfaces.checks import Json, as_object, field_of, invalid, missing, required_name, required_text
from gateway.surfaces.gemini.fields import message, optional_message, repeated

# A part holds one of these (https://ai.google.dev/api/caching#Part).
TEXT, FILE, ADDRESS, CALL, RESULT = "text", "inlineData", "fileData", "functionCall", "functionResponse"
OWN = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
"""The steps of Google's own tools."""
_KINDS = (TEXT, FILE, ADDRESS, CALL, RESULT, *OWN)
# Addresses of these kinds are opened by Google alone.
_OF_GOOGLE = ("gs://", "https://generativelanguage.googleapis.com/")
_YOUTUBE = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/", "https://m.youtube.com/")
# A part may say how a film is cut, and how large a picture is seen.
_SETTINGS = frozenset({"videoMetadata", "mediaResolution", "partMetadata"})
_LEVELS = {
    "MEDIA_RESOLUTION_LOW": "low",
    "MEDIA_RESOLUTION_MEDIUM": "medium",
    "MEDIA_RESOLUTION_HIGH": "high",
    "MEDIA_RESOLUTION_ULTRA_HIGH": "ultra_high",
}
# Google documents these keys of a result: https://ai.google.dev/api/caching#FunctionResponse
_OUTPUTS = frozenset({"output", "result"})
_ERROR = "error"
_WHOLE_RESULT = frozenset({"id", "name", "response", "parts"})

_encode = msgspec.json.Encoder().encode


def kind_of(part: Json, place: str) -> str:
    kinds = [name for name in _KINDS if part.get(name) is not None]
    if len(kinds) > 1:
        raise invalid(place, f"a part holds one of {kinds[0]} and {kinds[1]}")
    if not kinds and not part.get("thoughtSignature"):
        raise invalid(place, f"expected one of {', '.join(_KINDS)}")
    return kinds[0] if kinds else ""


def file_part(part: Json, kind: str, place: str, untranslatable: list[str]) -> Json:
    """A file that only Google can open stays unchanged, and `untranslatable` names it."""
    held, where = message(part[kind], field_of(place, kind)), field_of(place, kind)
    made: Json | None
    media_type = str(held.get("mimeType") or "")
    if kind == FILE:
        data = required_text(held, "data", where)
        check_file_size(field_of(where, "data"), len(data))
        made = _inline(required_name(held, "mimeType", where), data)
    else:
        made = _by_address(required_name(held, "fileUri", where), media_type)
    if made is None:
        return _googles(part, kind, f"{where}: only Google opens it", untranslatable)
    return _with_settings(made, part, kind, place, untranslatable)


def result_message(part: Json, call_id: str, name: str, place: str, untranslatable: list[str]) -> Json:
    """`name` is the function's, if no call has the id."""
    where = field_of(place, RESULT)
    result = message(part[RESULT], where)
    if any(result.get(field) for field in result.keys() - _WHOLE_RESULT):
        untranslatable.append(f"{where}: a chat completion has one result for each call")
    made: Json = {"role": "tool", "tool_call_id": call_id}
    response = as_object(result.get("response") or {}, field_of(where, "response"))
    text = response_text(response)
    if response.keys() == {_ERROR} and isinstance(response[_ERROR], str):
        made["is_error"] = True
    files = []
    for number, held in enumerate(repeated(result, "parts", where)):
        there = f"{where}.parts[{number}]"
        file = message(held, there)
        kind = FILE if file.get(FILE) is not None else ADDRESS
        if file.get(kind) is None:
            raise missing(f"{there}.{FILE}")
        files.append(file_part(file, kind, there, untranslatable))
    texts = [{"type": "text", "text": text}] if response or not files else []
    made["content"] = [*texts, *files] if files else text
    if name:
        made["name"] = name
    return made


def response_text(response: Json) -> str:
    if len(response) == 1:
        ((key, value),) = response.items()
        if isinstance(value, str) and (key in _OUTPUTS or key == _ERROR):
            return value
    return _encode(response).decode()


def _inline(media_type: str, data: str) -> Json:
    url, family = f"data:{media_type};base64,{data}", media_type.partition("/")[0]
    if family == "audio":
        sound = media_type.partition("/")[2].removeprefix("x-").replace("mpeg", "mp3")
        return {"type": "input_audio", "input_audio": {"data": data, "format": sound}}
    return _of_family(family, url)


def _of_family(family: str, url: str) -> Json:
    kind = {"image": "image_url", "video": "video_url"}.get(family, "document_url")
    return {"type": kind, kind: {"url": url}}


def _by_address(url: str, media_type: str) -> Json | None:
    family = media_type.partition("/")[0]
    if family == "audio" or url.startswith(_OF_GOOGLE) or url.startswith(_YOUTUBE):
        return None
    return _of_family(family, url)


def _with_settings(made: Json, part: Json, kind: str, place: str, untranslatable: list[str]) -> Json:
    if _SETTINGS.isdisjoint(part):
        return made
    resolution = optional_message(part, "mediaResolution", place)
    detail = _LEVELS.get(str(resolution.get("level"))) if resolution else None
    if part.get("videoMetadata") is not None:
        return _googles(part, kind, f"{place}.videoMetadata: a chat completion has no such field", untranslatable)
    if detail and made["type"] == "image_url":
        made["image_url"]["detail"] = detail
    return made


def _googles(part: Json, kind: str, problem: str, untranslatable: list[str]) -> Json:
    untranslatable.append(problem)
    own: dict[str, Any] = {name: value for name, value in part.items() if name != "thoughtSignature"}
    return {"type": kind, **own}
