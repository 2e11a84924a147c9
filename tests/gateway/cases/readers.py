"""Reads an answer of each surface with the vendor's official client: its text, its calls, its items and its usage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
from anthropic.types import Message
from openai import OpenAI, omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from tests.gateway.surfaces.messages import clients as messages

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """`calls` are the fields `id`, `name` and `arguments` (JSON text) of each call, with those that the protocol has
    beside them; `items` are the answer's parts as the client holds them."""

    text: str
    calls: list[Json]
    items: list[Json]
    usage: Json


def read_answer(surface: str, response: httpx2.Response) -> Answer:
    """Returns the answer, whole or streamed, as its client ends up with it. Raises the SDK's errors."""
    is_stream = response.headers["content-type"].startswith("text/event-stream")
    return _READERS[surface, is_stream](response)


class _Line:
    """OpenAI's SDK with one prepared response. One client serves all tests, since a new one takes a while."""

    def __init__(self) -> None:
        self.response = httpx2.Response(200)
        transport = httpx2.Client(transport=httpx2.MockTransport(lambda _: self.response))
        self.sdk = OpenAI(api_key="test", base_url="http://gateway.test", http_client=transport, max_retries=0)


@cache
def _line() -> _Line:
    return _Line()


def _openai(response: httpx2.Response) -> OpenAI:
    line = _line()
    headers = {"content-type": response.headers["content-type"]}
    line.response = httpx2.Response(response.status_code, headers=headers, content=response.content)
    return line.sdk


def _chat(response: httpx2.Response) -> Answer:
    return _of_completion(_openai(response).chat.completions.create(model="any", messages=[]))


def _chat_stream(response: httpx2.Response) -> Answer:
    state = ChatCompletionStreamState(input_tools=omit, response_format=omit)
    for chunk in _openai(response).chat.completions.create(model="any", messages=[], stream=True):
        state.handle_chunk(chunk)
    return _of_completion(state.current_completion_snapshot)


def _of_completion(completion: ChatCompletion) -> Answer:
    message = completion.choices[0].message
    calls = [{"id": call.id, **_named(call.to_dict())} for call in message.tool_calls or ()]
    usage = completion.usage.to_dict() if completion.usage is not None else {}
    return Answer(message.content or "", calls, calls, usage)


def _named(call: Json) -> Json:
    """Returns what is called: the fields of the function, or of the custom tool."""
    named: Json = call[call["type"]]
    return named


def _responses(response: httpx2.Response) -> Answer:
    return _of_response(_openai(response).responses.create(model="any", input=""))


def _responses_stream(response: httpx2.Response) -> Answer:
    with _openai(response).responses.stream(model="any", input="") as stream:
        return _of_response(stream.get_final_response())


def _of_response(response: Response) -> Answer:
    items = [item.to_dict() for item in response.output]
    calls = [{**item, "id": item["call_id"]} for item in items if item["type"] == "function_call"]
    return Answer(response.output_text, calls, items, response.usage.to_dict() if response.usage is not None else {})


def _messages(response: httpx2.Response) -> Answer:
    return _of_message(messages.read_whole(response.content, response.status_code))


def _messages_stream(response: httpx2.Response) -> Answer:
    return _of_message(messages.read_stream(response.content))


def _of_message(message: Message) -> Answer:
    items = [block.to_dict() for block in message.content]
    calls = [{**item, "arguments": json.dumps(item["input"])} for item in items if item["type"] == "tool_use"]
    text = "".join(str(item["text"]) for item in items if item["type"] == "text")
    return Answer(text, calls, items, message.usage.to_dict())


_READERS: Mapping[tuple[str, bool], Callable[[httpx2.Response], Answer]] = {
    ("chat", False): _chat,
    ("chat", True): _chat_stream,
    ("responses", False): _responses,
    ("responses", True): _responses_stream,
    ("messages", False): _messages,
    ("messages", True): _messages_stream,
}
