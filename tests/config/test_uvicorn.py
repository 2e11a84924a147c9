"""The private parts of uvicorn on which a web worker's protocol rests: this file fails when one is missing or changed.

What to do then: read what uvicorn does now, compare `config/web` with it, and correct the tables here last.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

import config.web.protocol
from config.web.direct import DirectCycle
from config.web.response import OneWriteCycle
from tests.config.client import Client

# In its module the protocol of web workers has replaced uvicorn's class.
RequestResponseCycle: Any = OneWriteCycle.__base__
# The attributes and methods that `config/web` reads, calls or replaces.
PARTS: dict[type[Any], set[str]] = {
    HttpToolsProtocol: {
        *("_get_upgrade", "_should_upgrade", "_start_asgi_task"),
        *("connection_lost", "data_received", "eof_received", "on_body", "on_headers_complete", "on_message_begin"),
        *("on_message_complete", "on_response_complete", "shutdown"),
        *(
            "access_log",
            "app",
            "client",
            "connections",
            "cycle",
            "expect_100_continue",
            "flow",
            "headers",
            "limit_concurrency",
        ),
        *("logger", "loop", "parser", "pipeline", "root_path", "scheme", "scope", "server_state"),
        *("timeout_keep_alive", "transport", "url"),
    },
    RequestResponseCycle: {
        *("receive", "send"),
        *("access_log", "chunked_encoding", "default_headers", "disconnected", "expected_content_length", "flow"),
        *("keep_alive", "logger", "message_event", "more_body", "on_response", "response_complete"),
        *("response_started", "scope", "transport", "waiting_for_100_continue"),
    },
    FlowControl: {"drain", "pause_reading", "read_paused", "resume_reading", "write_paused"},
    ServerState: {"connections", "default_headers", "total_requests"},
}
# The parameters of what `config/web` calls or replaces.
PARAMETERS = {
    HttpToolsProtocol.__init__: ("config", "server_state", "app_state", "_loop"),
    HttpToolsProtocol._get_upgrade: (),
    HttpToolsProtocol._should_upgrade: (),
    HttpToolsProtocol._start_asgi_task: ("cycle", "app"),
    HttpToolsProtocol.connection_lost: ("exc",),
    HttpToolsProtocol.data_received: ("data",),
    HttpToolsProtocol.eof_received: (),
    HttpToolsProtocol.on_body: ("body",),
    HttpToolsProtocol.on_headers_complete: (),
    HttpToolsProtocol.on_message_begin: (),
    HttpToolsProtocol.on_message_complete: (),
    HttpToolsProtocol.on_response_complete: (),
    HttpToolsProtocol.shutdown: (),
    RequestResponseCycle.__init__: (
        *("scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers", "message_event"),
        *("expect_100_continue", "keep_alive", "on_response"),
    ),
    RequestResponseCycle.receive: (),
    RequestResponseCycle.send: ("message",),
    FlowControl.drain: (),
    FlowControl.pause_reading: (),
    FlowControl.resume_reading: (),
}
# `HalfClosed` has an attribute of its own with the name of one of `FlowControl`.
_OWN = {"_transport"}


def defined_by(cls: type[Any]) -> set[str]:
    """Includes the attributes that the class sets on its objects."""
    nodes = ast.walk(ast.parse(inspect.getsource(cls)))
    set_on_self = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    return set_on_self | {name for name in vars(cls) if not name.startswith("__")}


def used_names() -> set[str]:
    trees = [ast.parse(path.read_text()) for path in Path(config.web.protocol.__file__).parent.glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_parts__that_the_protocol_of_web_workers_uses__are_there_and_are_all(cls: type[Any]) -> None:
    assert (used_names() & defined_by(cls)) - _OWN == PARTS[cls]


@pytest.mark.parametrize("function", PARAMETERS, ids=lambda function: function.__qualname__)
def test_parts__that_the_protocol_calls__take_these_parameters(function: Any) -> None:
    assert tuple(inspect.signature(function).parameters)[1:] == PARAMETERS[function]


def test_constructor__that_direct_requests_do_without__sets_nothing_else() -> None:
    """`access_logger` is used with an access log alone, and `body` by `receive`, which is replaced."""
    set_by_uvicorn = set(vars(cycle_of(OneWriteCycle)))

    assert set_by_uvicorn - {"access_logger", "body"} == {name for name in set_by_uvicorn if is_set(name)}


def is_set(name: str) -> bool:
    direct = DirectCycle(
        {},
        Client(),
        FlowControl(Client()),
        None,
        [],
        lambda: None,
        lambda cycle, application: None,
        expects_continue=False,
        keep_alive=True,
    )
    return hasattr(direct, name)


def cycle_of(cls: type[Any]) -> Any:
    names = tuple(inspect.signature(RequestResponseCycle.__init__).parameters)[1:]
    given: Any = dict.fromkeys(names)
    return cls(**given)


def test_responses__of_uvicorns_own_protocol__have_the_class_of_web_workers() -> None:
    """uvicorn looks the class up in its module, where the protocol has replaced it."""
    assert httptools_impl.RequestResponseCycle is OneWriteCycle
    assert "RequestResponseCycle(" in inspect.getsource(HttpToolsProtocol.on_headers_complete)


def test_tables__of_uvicorn__are_bytes_by_status_and_a_pattern_of_bytes() -> None:
    assert httptools_impl.STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"
    assert httptools_impl.HEADER_RE.search(b"a b")
    assert not httptools_impl.HEADER_RE.search(b"x-request-id")
