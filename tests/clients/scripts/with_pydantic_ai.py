from __future__ import annotations

import asyncio
from typing import Any

from cases import MODEL, NEXT_PROMPT, REASONING_MODEL, Result, Variant, run, weather_in
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class City(BaseModel):
    name: str
    days: int


class PydanticAI(Variant):
    def __init__(self, name: str, prefix: str, model: type[Model], provider: type[Any]) -> None:
        self.name = name
        self.prefix = prefix
        self.model = model
        self.provider = provider

    def agent(self, **options: Any) -> Agent[None, Any]:
        return Agent(f"{self.prefix}:{MODEL}", **options)

    def whole(self, prompt: str) -> Result:
        result = self.agent().run_sync(prompt)
        return {"text": result.output, "usage": [result.usage.input_tokens, result.usage.output_tokens]}

    def streamed(self, prompt: str) -> Result:
        return asyncio.get_event_loop_policy().get_event_loop().run_until_complete(self._streamed(prompt))

    async def _streamed(self, prompt: str) -> Result:
        async with self.agent().run_stream(prompt) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
            usage = result.usage
        return {
            "text": "".join(pieces),
            "pieces": len(pieces),
            "usage": [usage.input_tokens, usage.output_tokens],
        }

    def tools(self, prompt: str) -> Result:
        cities = []

        def get_weather(city: str) -> str:
            cities.append(city)
            return weather_in(city)

        return {"cities": cities, "text": self.agent(tools=[get_weather]).run_sync(prompt).output}

    def tools_streamed(self, prompt: str) -> Result:
        return asyncio.get_event_loop_policy().get_event_loop().run_until_complete(self._tools_streamed(prompt))

    async def _tools_streamed(self, prompt: str) -> Result:
        cities = []

        def get_weather(city: str) -> str:
            cities.append(city)
            return weather_in(city)

        async with self.agent(tools=[get_weather]).run_stream(prompt) as result:
            return {"text": await result.get_output(), "cities": cities}

    def turns(self, prompt: str) -> Result:
        agent = Agent(f"{self.prefix}:{REASONING_MODEL}")
        first = agent.run_sync(prompt)
        (thinking, _) = first.all_messages()[-1].parts
        last = agent.run_sync(NEXT_PROMPT, message_history=first.all_messages())
        return {"reasoning": thinking.content, "text": last.output}

    def structured(self, prompt: str) -> Result:
        by_tool = self.agent(output_type=City).run_sync(prompt).output
        # Pydantic AI asks for a schema of Anthropic's models only where it knows by their names that they have it.
        if self.model is not AnthropicModel:
            assert self.agent(output_type=NativeOutput(City)).run_sync(prompt).output == by_tool
        return {"value": by_tool.model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        settings = {} if temperature is None else {"temperature": temperature}
        given = self.model(model, provider=self.provider(api_key=key))
        return Agent(given).run_sync(prompt, model_settings=settings).output


if __name__ == "__main__":
    run(
        PydanticAI("responses", "openai", OpenAIResponsesModel, OpenAIProvider),
        PydanticAI("chat", "openai-chat", OpenAIChatModel, OpenAIProvider),
        PydanticAI("messages", "anthropic", AnthropicModel, AnthropicProvider),
    )
