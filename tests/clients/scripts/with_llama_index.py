from __future__ import annotations

import asyncio
import os
from typing import Any

from cases import MODEL, Embeddings, Result, Variant, run, weather_in
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses
from pydantic import BaseModel


class City(BaseModel):
    """A city to visit."""

    name: str
    days: int


class LlamaIndex(Variant):
    def __init__(self, name: str, model: type[LLM], **options: Any) -> None:
        self.name = name
        self.type = model
        self.options = options

    def model(self, **options: Any) -> LLM:
        base = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
        return self.type(**{"model": MODEL, "is_function_calling_model": True, **base, **self.options, **options})

    def whole(self, prompt: str) -> Result:
        return {"text": self.model().complete(prompt).text}

    def streamed(self, prompt: str) -> Result:
        pieces = [piece.delta for piece in self.model().stream_complete(prompt) if piece.delta]
        return {"text": "".join(pieces), "pieces": len(pieces)}

    def tools(self, prompt: str) -> Result:
        return self.with_tool(prompt, streaming=False)

    def tools_streamed(self, prompt: str) -> Result:
        return self.with_tool(prompt, streaming=True)

    def with_tool(self, prompt: str, *, streaming: bool) -> Result:
        cities = []

        def get_weather(city: str) -> str:
            """Returns the weather of a city."""
            cities.append(city)
            return weather_in(city)

        async def answer() -> str:
            agent = FunctionAgent(tools=[get_weather], llm=self.model(), streaming=streaming)
            return str(await agent.run(prompt))

        return {"cities": cities, "text": asyncio.run(answer())}

    def structured(self, prompt: str) -> Result:
        return {"value": self.model().structured_predict(City, PromptTemplate(prompt)).model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        # LlamaIndex has bounds of its own for the temperature that it knows.
        fields = {} if temperature is None else {"temperature": temperature}
        options = {} if key is None else {"api_key": key}
        return self.model(model=model, additional_kwargs=fields, **options).complete(prompt)


class Vectors(Embeddings):
    def vectors(self, texts: list[str], *, key: str | None = None, model: str = MODEL) -> list[list[float]]:
        server = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": key or os.environ["OPENAI_API_KEY"]}
        return OpenAILikeEmbedding(model_name=model, **server).get_text_embedding_batch(texts)


if __name__ == "__main__":
    run(
        LlamaIndex("chat", OpenAILike, is_chat_model=True),
        LlamaIndex("responses", OpenAILikeResponses),
        # Without `is_chat_model` it calls completions of texts.
        LlamaIndex("completions", OpenAILike),
        Vectors(),
    )
