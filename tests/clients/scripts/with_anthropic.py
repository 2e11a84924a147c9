from __future__ import annotations

from typing import Any

from anthropic import Anthropic, beta_tool
from cases import MODEL, NEXT_PROMPT, REASONING_MODEL, Refused, Result, Variant, run, weather_in
from pydantic import BaseModel


class City(BaseModel):
    name: str
    days: int


def request(prompt: str, model: str = MODEL) -> dict[str, Any]:
    return {"model": model, "max_tokens": 200, "messages": [{"role": "user", "content": prompt}]}


def weather_tool(cities: list[str]) -> Any:
    @beta_tool
    def get_weather(city: str) -> str:
        """Returns the weather.

        Args:
            city: The city's name.
        """
        cities.append(city)
        return weather_in(city)

    return get_weather


class Messages(Variant):
    name = "messages"

    def whole(self, prompt: str) -> Result:
        answer = Anthropic().messages.create(**request(prompt))
        return {"text": answer.content[0].text, "usage": [answer.usage.input_tokens, answer.usage.output_tokens]}

    def streamed(self, prompt: str) -> Result:
        with Anthropic().messages.stream(**request(prompt)) as stream:
            pieces = list(stream.text_stream)
            final = stream.get_final_message()
        assert final.content[0].text == "".join(pieces)
        return {
            "text": final.content[0].text,
            "pieces": len(pieces),
            "usage": [final.usage.input_tokens, final.usage.output_tokens],
        }

    def tools(self, prompt: str) -> Result:
        cities: list[str] = []
        runner = Anthropic().beta.messages.tool_runner(**request(prompt), tools=[weather_tool(cities)])
        return {"cities": cities, "text": runner.until_done().content[0].text}

    def tools_streamed(self, prompt: str) -> Result:
        cities: list[str] = []
        runner = Anthropic().beta.messages.tool_runner(**request(prompt), tools=[weather_tool(cities)], stream=True)
        *_, final = [stream.get_final_message() for stream in runner]
        return {"cities": cities, "text": final.content[0].text}

    def turns(self, prompt: str) -> Result:
        options = {"model": REASONING_MODEL, "max_tokens": 2000, "thinking": {"type": "adaptive"}}
        messages: list[Any] = [{"role": "user", "content": prompt}]
        thinking, text = Anthropic().messages.create(messages=messages, **options).content
        messages += [{"role": "assistant", "content": [thinking, text]}, {"role": "user", "content": NEXT_PROMPT}]
        *_, last = Anthropic().messages.create(messages=messages, **options).content
        return {"reasoning": thinking.thinking, "text": last.text}

    def structured(self, prompt: str) -> Result:
        answer = Anthropic().messages.parse(**request(prompt), output_format=City)
        return {"value": answer.parsed_output.model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        # This version of the SDK has left out the parameter that older ones had.
        fields = {} if temperature is None else {"temperature": temperature}
        return Anthropic(api_key=key).messages.create(**request(prompt, model), extra_body=fields)


class Models(Refused):
    name = "models"

    def listed(self, prompt: str) -> Result:
        models = Anthropic().models
        return {"names": [model.id for model in models.list()], "name": models.retrieve(MODEL).id}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, **options: Any) -> Any:
        return Anthropic(api_key=key).models.retrieve(model)


if __name__ == "__main__":
    run(Messages(), Models())
