from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cases import (
    BAD_TEMPERATURE,
    MODEL,
    NEXT_PROMPT,
    REASONING_MODEL,
    Embeddings,
    Refused,
    Result,
    Variant,
    run,
    weather_in,
)
from openai import OpenAI
from pydantic import BaseModel

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


class City(BaseModel):
    name: str
    days: int


def client(key: str | None = None) -> OpenAI:
    return OpenAI(api_key=key)


class Chat(Variant):
    name = "chat"

    def whole(self, prompt: str) -> Result:
        answer = client().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])
        return {
            "text": answer.choices[0].message.content,
            "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
        }

    def streamed(self, prompt: str) -> Result:
        options = {"stream_options": {"include_usage": True}}
        messages = [{"role": "user", "content": prompt}]
        with client().chat.completions.stream(model=MODEL, messages=messages, **options) as stream:
            pieces = [event.delta for event in stream if event.type == "content.delta"]
            final = stream.get_final_completion()
        return {
            "text": "".join(pieces),
            "pieces": len(pieces),
            "usage": [final.usage.prompt_tokens, final.usage.completion_tokens],
        }

    def tools(self, prompt: str) -> Result:
        return self.with_tool(prompt, client().chat.completions.create)

    def tools_streamed(self, prompt: str) -> Result:
        def create(**options: Any) -> Any:
            with client().chat.completions.stream(**options) as stream:
                return stream.get_final_completion()

        return self.with_tool(prompt, create)

    def with_tool(self, prompt: str, create: Callable[..., Any]) -> Result:
        tool = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": PARAMETERS}}
        messages: list[Any] = [{"role": "user", "content": prompt}]
        message = create(model=MODEL, messages=messages, tools=[tool]).choices[0].message
        (call,) = message.tool_calls
        city = json.loads(call.function.arguments)["city"]
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": weather_in(city)}]
        text = create(model=MODEL, messages=messages, tools=[tool]).choices[0].message.content
        return {"cities": [city], "text": text}

    def structured(self, prompt: str) -> Result:
        messages = [{"role": "user", "content": prompt}]
        answer = client().chat.completions.parse(model=MODEL, messages=messages, response_format=City)
        return {"value": answer.choices[0].message.parsed.model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        messages = [{"role": "user", "content": prompt}]
        return client(key).chat.completions.create(model=model, messages=messages, temperature=temperature)


class Responses(Variant):
    name = "responses"

    def whole(self, prompt: str) -> Result:
        answer = client().responses.create(model=MODEL, input=prompt)
        return {"text": answer.output_text, "usage": [answer.usage.input_tokens, answer.usage.output_tokens]}

    def streamed(self, prompt: str) -> Result:
        with client().responses.stream(model=MODEL, input=prompt) as stream:
            pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        assert final.output_text == "".join(pieces)
        return {
            "text": final.output_text,
            "pieces": len(pieces),
            "usage": [final.usage.input_tokens, final.usage.output_tokens],
        }

    def tools(self, prompt: str) -> Result:
        return self.with_tool(prompt, client().responses.create)

    def tools_streamed(self, prompt: str) -> Result:
        def create(**options: Any) -> Any:
            with client().responses.stream(**options) as stream:
                return stream.get_final_response()

        return self.with_tool(prompt, create)

    def with_tool(self, prompt: str, create: Callable[..., Any]) -> Result:
        tool = {"type": "function", "name": "get_weather", "strict": True, "parameters": PARAMETERS}
        items: list[Any] = [{"role": "user", "content": prompt}]
        first = create(model=MODEL, input=items, tools=[tool])
        (call,) = [item for item in first.output if item.type == "function_call"]
        city = json.loads(call.arguments)["city"]
        items += [*first.output, {"type": "function_call_output", "call_id": call.call_id, "output": weather_in(city)}]
        return {"cities": [city], "text": create(model=MODEL, input=items, tools=[tool]).output_text}

    def turns(self, prompt: str) -> Result:
        create = client().responses.create
        items: list[Any] = [{"role": "user", "content": prompt}]
        first = create(model=REASONING_MODEL, input=items)
        items += [*first.output, {"role": "user", "content": NEXT_PROMPT}]
        return {
            "reasoning": first.output[0].summary[0].text,
            "text": create(model=REASONING_MODEL, input=items).output_text,
        }

    def structured(self, prompt: str) -> Result:
        answer = client().responses.parse(model=MODEL, input=prompt, text_format=City)
        return {"value": answer.output_parsed.model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        return client(key).responses.create(model=model, input=prompt, temperature=temperature)


class Completions(Refused):
    name = "completions"

    def whole(self, prompt: str) -> Result:
        answer = client().completions.create(model=MODEL, prompt=prompt)
        return {"text": answer.choices[0].text, "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens]}

    def streamed(self, prompt: str) -> Result:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        *chunks, last = client().completions.create(model=MODEL, prompt=prompt, **options)
        pieces = [chunk.choices[0].text for chunk in chunks if chunk.choices[0].text]
        return {
            "text": "".join(pieces),
            "pieces": len(pieces),
            "usage": [last.usage.prompt_tokens, last.usage.completion_tokens],
        }

    def bad_field(self, prompt: str) -> Result:
        return self.refused(prompt, temperature=BAD_TEMPERATURE)

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, **options: Any) -> Any:
        return client(key).completions.create(model=model, prompt=prompt, **options)


class Vectors(Embeddings):
    def vectors(self, texts: list[str], *, key: str | None = None, model: str = MODEL) -> list[list[float]]:
        return [row.embedding for row in client(key).embeddings.create(model=model, input=texts).data]


class Models(Refused):
    name = "models"

    def listed(self, prompt: str) -> Result:
        models = client().models
        return {"names": [model.id for model in models.list()], "name": models.retrieve(MODEL).id}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, **options: Any) -> Any:
        return client(key).models.retrieve(model)


if __name__ == "__main__":
    run(Chat(), Responses(), Completions(), Vectors(), Models())
