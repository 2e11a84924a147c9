"""The expectations of a case: a function for each key of `expected`, which asserts that it holds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec
from openai._streaming import SSEDecoder

from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.factories.analytics import store
from tests.factories.core import client_of, make_project
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import answer_with
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.fakes.scripted import Script
from tests.gateway.cases.readers import Json, read_answer
from tests.gateway.cases.scene import Played
from tests.gateway.evaluations.conftest import Scene as JudgeScene

_MISSING = object()


def check(played: Played) -> None:
    """Asserts all that the case expects. Raises KeyError for a key that has no check."""
    for key, expected in played.case.expected.items():
        _CHECKS[key](played, expected)


def _status(played: Played, expected: int) -> None:
    assert played.response.status_code == expected, played.response.text[:1000]


def _code(played: Played, expected: str) -> None:
    assert played.response.json()["error"]["code"] == expected, played.response.text


def _message_contains(played: Played, expected: str) -> None:
    assert expected in played.response.json()["error"]["message"], played.response.text


def _headers(played: Played, expected: Mapping[str, str]) -> None:
    assert {name: played.response.headers.get(name) for name in expected} == expected, played.response.headers


def _text(played: Played, expected: str) -> None:
    text = read_answer(played.case.surface, played.response).text
    assert text == expected, text


def _tool_calls(played: Played, expected: list[Json]) -> None:
    calls = read_answer(played.case.surface, played.response).calls
    if played.case.surface == "messages":
        # The Messages API has an object where the others have its text, which may be written in several ways.
        calls, expected = map(_with_equal_texts, (calls, expected))
    assert len(calls) == len(expected), calls
    for call, fields in zip(calls, expected, strict=True):
        assert _holds(call, fields), call


def _with_equal_texts(calls: Iterable[Json]) -> list[Json]:
    return [
        {**call, "arguments": json.dumps(json.loads(call["arguments"]), sort_keys=True)}
        if "arguments" in call
        else call
        for call in calls
    ]


def _events_parse(played: Played, expected: bool) -> None:
    events = [event.data for event in SSEDecoder().iter_bytes(iter([played.response.content]))]
    assert events
    assert expected is all(_is_json(data) for data in events if data != "[DONE]"), events


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _usage(played: Played, expected: Json) -> None:
    _usage_any_of(played, [expected])


def _usage_any_of(played: Played, expected: list[Json]) -> None:
    usage = read_answer(played.case.surface, played.response).usage
    assert any(_holds(usage, one) for one in expected), usage


def _usage_above_zero(played: Played, names: list[str]) -> None:
    usage = read_answer(played.case.surface, played.response).usage
    assert all(usage[name] > 0 for name in names), usage


def _record_above_zero(played: Played, names: list[str]) -> None:
    record = played.gateway.record(played.response)
    found = {name: Decimal(getattr(record, name)) for name in names}
    assert all(value > 0 for value in found.values()), found


def _record(played: Played, expected: Json) -> None:
    record = played.gateway.record(played.response)
    found = {name: getattr(record, name) for name in expected}
    assert {name: _exact(value) for name, value in found.items()} == {
        name: _exact(value) for name, value in expected.items()
    }, found


def _exact(value: Any) -> Any:
    """Returns a figure as a decimal, and all else as it is."""
    try:
        return value if isinstance(value, bool) else Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return value


def _warning_names(played: Played, words: list[str]) -> None:
    warning = played.response.headers.get("x-svc-warning", "")
    assert all(word in warning for word in words), warning


def _upstream_calls(played: Played, expected: int) -> None:
    assert len(played.script.received) == expected, [received.path for received in played.script.received]


def _upstream_request_lacks(played: Played, paths: list[str]) -> None:
    request = json.loads(played.last_request.body)
    assert [path for path in paths if _at(request, path) is not _MISSING] == [], request


def _upstream_request_has(played: Played, expected: Mapping[str, Any]) -> None:
    request = json.loads(played.last_request.body)
    assert {path: _at(request, path) for path in expected} == expected, request


def _upstream_request_has_any_of(played: Played, sets: list[Mapping[str, Any]]) -> None:
    request = json.loads(played.last_request.body)
    assert any(all(_is_at(request, path, value) for path, value in one.items()) for one in sets), request


def _is_at(request: Json, path: str, value: Any) -> bool:
    found = _at(request, path)
    return found not in (_MISSING, None, "", [], {}) if value == "*" else bool(found == value)


def _upstream_contains(played: Played, words: list[str]) -> None:
    text = json.dumps(json.loads(played.last_request.body), ensure_ascii=False)
    assert [word for word in words if word not in text] == [], text


def _upstream_headers(played: Played, expected: Mapping[str, str]) -> None:
    headers = {name.lower(): value for name, value in played.last_request.headers.items()}
    assert all(words in headers.get(name, "") for name, words in expected.items()), headers


def _any_of(played: Played, choices: list[Json]) -> None:
    failures = []
    for choice in choices:
        try:
            for key, expected in choice.items():
                _CHECKS[key](played, expected)
        except AssertionError as failure:
            failures.append(failure)
        else:
            return
    raise AssertionError([str(failure)[:500] for failure in failures])


def _upstream_tools_include_a_function_for(played: Played, functions: list[str]) -> None:
    request = played.read_last_request()
    assert all(function_for(request, one) for one in functions), request.tools


def _upstream_history(played: Played, expected: Mapping[str, list[Json]]) -> None:
    assert expected.keys() <= {"calls", "results"}
    request = played.read_last_request()
    for call in expected.get("calls", ()):
        assert any(_is_call(one, call) for one in request.calls), request.calls
    for result in expected.get("results", ()):
        # Gemini answers a function by its name, the others by the call's id.
        keys = {key for call in request.calls if _names(call.name, result["of"]) for key in (call.id, call.name)}
        texts = [text for key, text in request.results if key in keys]
        assert any(_contains(text, result["contains"]) for text in texts), request.results


def _calls_back(played: Played, expected: Mapping[str, Any]) -> None:
    name = function_for(played.read_last_request(), expected["function_for"])
    for stream in (False, True):
        again = played.stage.play_call(played.case, name, expected["arguments"], stream=stream)
        _status(again, 200)
        items = read_answer(again.case.surface, again.response).items
        assert any(_holds(item, expected["item"]) for item in items), items


def _alone(played: Played, expected: Mapping[str, Any]) -> None:
    assert expected.keys() <= {"status", "code"}
    alone = played.stage.play_alone(played.case)
    _status(alone, expected["status"])
    _code(alone, expected["code"])


def _judged_by(played: Played, expected: Mapping[str, Any]) -> None:
    """A dry run of a judge over the recorded request. The test's own process makes it, since the service of the cases
    has no store of requests."""
    provider = expected["model"].partition("/")[0]
    script = Script([answer_with(FAKES[provider], Story(text=json.dumps(expected["verdict"])))])
    played.stage.server.scripts[name := f"{provider}-judge"] = script
    (entry,) = played.stage.service.entries(played.response.headers["x-request-id"])
    with tempfile.TemporaryDirectory() as folder:
        project = make_project()
        access = FAKES[provider].credentials(played.stage.server.base_url(name))
        row = ProviderIntegration(project=project, provider=provider, base_url=access.base_url, enabled=True)
        store_secret(row, access.secret)
        row.save()
        scene = JudgeScene(project, client_of(project), script, Path(folder))
        record = msgspec.structs.replace(entry.record, project_id=str(project.pk))
        store(scene.spool, msgspec.structs.replace(entry, record=record))
        evaluator_id = scene.evaluator("judge", criteria=expected["criteria"], model=expected["model"])
        (tried,) = scene.dry_run(evaluator_id, record.request_id)["results"]
    assert tried["score"] == expected["score"], tried
    for key, value in expected["upstream"].items():
        _CHECKS[key](replace(played, script=script), value)


def _for_people(played: Played, expected: str) -> None:
    """A note, which says nothing that a program can check."""


def function_for(request: ReadRequest, function: str) -> str:
    """Returns the name of the request's tool that stands for `name` or `namespace/name`, empty without one."""
    exact = [name for name in request.tools if name == function]
    return next(iter(exact or [name for name in request.tools if _names(name, function)]), "")


def _names(name: str, function: str) -> bool:
    return all(part in name for part in function.split("/"))


def _is_call(call: Call, expected: Json) -> bool:
    assert expected.keys() <= {"id", "name", "contains"}
    # Gemini's calls have no ids.
    is_named = _names(call.name, expected["name"]) and call.id in ("", expected.get("id", call.id))
    return is_named and _contains(json.dumps(call.arguments), expected.get("contains", ()))


def _contains(text: str, words: Iterable[str]) -> bool:
    return all(word in text for word in words)


def _holds(found: Json, expected: Json) -> bool:
    return all(found.get(name, _MISSING) == value for name, value in expected.items())


def _at(value: Any, path: str) -> Any:
    """Returns what stands at a path such as `tools.0.name`."""
    for step in path.split("."):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return _MISSING
    return value


_CHECKS: Mapping[str, Callable[[Played, Any], None]] = {
    "status": _status,
    "code": _code,
    "message_contains": _message_contains,
    "headers": _headers,
    "text": _text,
    "tool_calls": _tool_calls,
    "events_parse": _events_parse,
    "usage": _usage,
    "usage_any_of": _usage_any_of,
    "usage_above_zero": _usage_above_zero,
    "record_above_zero": _record_above_zero,
    "record": _record,
    "warning_names": _warning_names,
    "upstream_calls": _upstream_calls,
    "upstream_request_lacks": _upstream_request_lacks,
    "upstream_request_has": _upstream_request_has,
    "upstream_request_has_any_of": _upstream_request_has_any_of,
    "upstream_contains": _upstream_contains,
    "upstream_headers": _upstream_headers,
    "any_of": _any_of,
    "upstream_tools_include_a_function_for": _upstream_tools_include_a_function_for,
    "upstream_history": _upstream_history,
    "calls_back": _calls_back,
    "alone": _alone,
    "judged_by": _judged_by,
    "note": _for_people,
}
KEYS = frozenset(_CHECKS)
