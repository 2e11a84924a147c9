from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import litellm
from cases import MODEL, Embeddings, Result, Variant, run, weather_in
from pydantic import BaseModel

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}


class City(BaseModel):
    name: str
    days: int


class Completion(Variant):
    """`litellm.completion`, which the model's prefix sends to chat completions or to Messages."""

    def __init__(self, name: str, prefix: str) -> None:
        self.name = name
        self.prefix = prefix

    def create(self, messages: list[Any], model: str = MODEL, **options: Any) -> Any:
        return litellm.completion(model=f"{self.prefix}/{model}", messages=messages, **options)

    def whole(self, prompt: str) -> Result:
        answer = self.create([{"role": "user", "content": prompt}])
        return {
            "text": answer.choices[0].message.content,
            "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
        }

    def streamed(self, prompt: str) -> Result:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(self.create([{"role": "user", "content": prompt}], **options))
        pieces = [
            chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content
        ]
        (usage,) = [chunk.usage for chunk in chunks if getattr(chunk, "usage", None)]
        return {
            "text": "".join(pieces),
            "pieces": len(pieces),
            "usage": [usage.prompt_tokens, usage.completion_tokens],
        }

    def tools(self, prompt: str) -> Result:
        return self.with_tool(prompt, self.create)

    def tools_streamed(self, prompt: str) -> Result:
        def create(messages: list[Any], **options: Any) -> Any:
            return litellm.stream_chunk_builder(list(self.create(messages, stream=True, **options)), messages=messages)

        return self.with_tool(prompt, create)

    def with_tool(self, prompt: str, create: Callable[..., Any]) -> Result:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        message = create(messages, tools=[TOOL]).choices[0].message
        (call,) = message.tool_calls
        city = json.loads(call.function.arguments)["city"]
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": weather_in(city)}]
        return {"cities": [city], "text": create(messages, tools=[TOOL]).choices[0].message.content}

    def structured(self, prompt: str) -> Result:
        answer = self.create([{"role": "user", "content": prompt}], response_format=City)
        return {"value": json.loads(answer.choices[0].message.content)}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        options = {"api_key": key, "temperature": temperature}
        return self.create([{"role": "user", "content": prompt}], model, **options)


class Responses(Variant):
    name = "responses"

    def create(self, prompt: Any, model: str = MODEL, **options: Any) -> Any:
        return litellm.responses(model=f"openai/{model}", input=prompt, **options)

    def whole(self, prompt: str) -> Result:
        answer = self.create(prompt)
        return {"text": text_of(answer), "usage": [answer.usage.input_tokens, answer.usage.output_tokens]}

    def streamed(self, prompt: str) -> Result:
        events = list(self.create(prompt, stream=True))
        pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
        (completed,) = [event.response for event in events if event.type == "response.completed"]
        return {
            "text": "".join(pieces),
            "pieces": len(pieces),
            "usage": [completed.usage.input_tokens, completed.usage.output_tokens],
        }

    def tools(self, prompt: str) -> Result:
        return self.with_tool(prompt, self.create)

    def tools_streamed(self, prompt: str) -> Result:
        def create(items: list[Any], **options: Any) -> Any:
            events = list(self.create(items, stream=True, **options))
            (completed,) = [event.response for event in events if event.type == "response.completed"]
            return completed

        return self.with_tool(prompt, create)

    def with_tool(self, prompt: str, create: Callable[..., Any]) -> Result:
        tool = {"type": "function", "name": "get_weather", "parameters": PARAMETERS}
        items: list[Any] = [{"role": "user", "content": prompt}]
        first = create(items, tools=[tool])
        (call,) = [item for item in first.output if item.type == "function_call"]
        city = json.loads(call.arguments)["city"]
        items += [item.model_dump(exclude_none=True) for item in first.output]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": weather_in(city)}]
        return {"cities": [city], "text": text_of(create(items, tools=[tool]))}

    def structured(self, prompt: str) -> Result:
        return {"value": json.loads(text_of(self.create(prompt, text_format=City)))}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        return self.create(prompt, model, api_key=key, temperature=temperature)


class Vectors(Embeddings):
    def vectors(self, texts: list[str], *, key: str | None = None, model: str = MODEL) -> list[list[float]]:
        answer = litellm.embedding(model=f"openai/{model}", input=texts, api_key=key)
        return [row["embedding"] for row in answer.data]


def text_of(answer: Any) -> str:
    messages = [item for item in answer.output if item.type == "message"]
    return "".join(part.text for message in messages for part in message.content)


if __name__ == "__main__":
    # LiteLLM reads a price list from the network when it is imported, unless LITELLM_LOCAL_MODEL_COST_MAP is set.
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"]
    # LiteLLM asks for a whole response and cuts it into pieces itself, unless it knows that the model can stream.
    litellm.register_model({MODEL: {"litellm_provider": "openai", "supports_native_streaming": True}})
    run(Completion("chat", "openai"), Responses(), Completion("messages", "anthropic"), Vectors())
