from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from agents import Agent, ModelSettings, MultiProvider, RunConfig, Runner, function_tool, set_tracing_disabled
from cases import MODEL, NEXT_PROMPT, REASONING_MODEL, Result, Variant, run, weather_in
from pydantic import BaseModel


class City(BaseModel):
    name: str
    days: int


def config(key: str | None = None) -> RunConfig:
    # The SDK reads the part of a model's name before the slash as one of its own providers, unless told otherwise.
    return RunConfig(
        model_provider=MultiProvider(openai_api_key=key, openai_prefix_mode="model_id", unknown_prefix_mode="model_id")
    )


def helper(cities: list[str]) -> Agent:
    @function_tool
    def get_weather(city: str) -> str:
        cities.append(city)
        return weather_in(city)

    return Agent(name="tools", instructions="Answer briefly.", model=MODEL, tools=[get_weather])


class Responses(Variant):
    name = "responses"

    def whole(self, prompt: str) -> Result:
        result = Runner.run_sync(Agent(name="whole", model=MODEL), prompt, run_config=config())
        usage = result.context_wrapper.usage
        return {"text": result.final_output, "usage": [usage.input_tokens, usage.output_tokens]}

    def streamed(self, prompt: str) -> Result:
        return done(self._streamed(prompt))

    async def _streamed(self, prompt: str) -> Result:
        result = Runner.run_streamed(Agent(name="streamed", model=MODEL), prompt, run_config=config())
        pieces = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        usage = result.context_wrapper.usage
        return {
            "text": result.final_output,
            "pieces": len(pieces),
            "usage": [usage.input_tokens, usage.output_tokens],
        }

    def tools(self, prompt: str) -> Result:
        cities: list[str] = []
        return {"cities": cities, "text": Runner.run_sync(helper(cities), prompt, run_config=config()).final_output}

    def tools_streamed(self, prompt: str) -> Result:
        return done(self._tools_streamed(prompt))

    async def _tools_streamed(self, prompt: str) -> Result:
        cities: list[str] = []
        result = Runner.run_streamed(helper(cities), prompt, run_config=config())
        async for _ in result.stream_events():
            pass
        return {"cities": cities, "text": result.final_output}

    def turns(self, prompt: str) -> Result:
        agent = Agent(name="turns", model=REASONING_MODEL)
        first = Runner.run_sync(agent, prompt, run_config=config())
        items = [*first.to_input_list(), {"role": "user", "content": NEXT_PROMPT}]
        return {
            "reasoning": first.raw_responses[0].output[0].summary[0].text,
            "text": Runner.run_sync(agent, items, run_config=config()).final_output,
        }

    def structured(self, prompt: str) -> Result:
        result = Runner.run_sync(Agent(name="structured", model=MODEL, output_type=City), prompt, run_config=config())
        return {"value": result.final_output.model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        agent = Agent(name="refused", model=model, model_settings=ModelSettings(temperature=temperature))
        return Runner.run_sync(agent, prompt, run_config=config(key)).final_output


def done(coroutine: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.get_event_loop_policy().get_event_loop().run_until_complete(coroutine)


if __name__ == "__main__":
    set_tracing_disabled(True)
    run(Responses())
