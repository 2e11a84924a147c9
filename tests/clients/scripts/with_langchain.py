from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from cases import MODEL, NEXT_PROMPT, REASONING_MODEL, Embeddings, Result, Variant, run, weather_in
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class City(BaseModel):
    """A city to visit."""

    name: str
    days: int


@tool
def get_weather(city: str) -> str:
    """Returns the weather of a city."""
    return weather_in(city)


class LangChain(Variant):
    def __init__(self, name: str, model: Callable[..., BaseChatModel], methods: list[str], **options: Any) -> None:
        self.name = name
        self.methods = methods
        self.model = lambda **more: model(**{"model": MODEL, **options, **more})

    def whole(self, prompt: str) -> Result:
        answer = self.model().invoke(prompt)
        return {
            "text": answer.text,
            "usage": [answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]],
        }

    def streamed(self, prompt: str) -> Result:
        chunks = list(self.model().stream(prompt))
        final = reduce(add, chunks)
        return {
            "text": final.text,
            "pieces": sum(bool(chunk.text) for chunk in chunks),
            "usage": [final.usage_metadata["input_tokens"], final.usage_metadata["output_tokens"]],
        }

    def tools(self, prompt: str) -> Result:
        return self.with_tool(prompt, self.model().bind_tools([get_weather]).invoke)

    def tools_streamed(self, prompt: str) -> Result:
        stream = self.model().bind_tools([get_weather]).stream
        return self.with_tool(prompt, lambda messages: reduce(add, stream(messages)))

    def with_tool(self, prompt: str, ask: Callable[[list[Any]], Any]) -> Result:
        messages: list[Any] = [HumanMessage(prompt)]
        answer = ask(messages)
        (call,) = answer.tool_calls
        result = get_weather.invoke(call)
        assert isinstance(result, ToolMessage)
        final = ask([*messages, answer, result])
        return {"cities": [call["args"]["city"]], "text": final.text}

    def turns(self, prompt: str) -> Result:
        model = self.model(model=REASONING_MODEL)
        messages: list[Any] = [HumanMessage(prompt)]
        first = model.invoke(messages)
        (reasoning,) = [block["reasoning"] for block in first.content_blocks if block["type"] == "reasoning"]
        last = model.invoke([*messages, first, HumanMessage(NEXT_PROMPT)])
        return {"reasoning": reasoning, "text": last.text}

    def structured(self, prompt: str) -> Result:
        found = [self.model().with_structured_output(City, method=method).invoke(prompt) for method in self.methods]
        assert all(value == found[0] for value in found)
        return {"value": found[0].model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        given = {"api_key": key, "temperature": temperature}
        options = {name: value for name, value in given.items() if value is not None}
        return self.model(model=model, **options).invoke(prompt)


class Vectors(Embeddings):
    def vectors(self, texts: list[str], *, key: str | None = None, model: str = MODEL) -> list[list[float]]:
        options = {} if key is None else {"api_key": key}
        # With its default LangChain fetches a tokenizer and sends tokens.
        return OpenAIEmbeddings(model=model, check_embedding_ctx_length=False, **options).embed_documents(texts)


if __name__ == "__main__":
    run(
        LangChain("chat", ChatOpenAI, ["json_schema", "function_calling"], stream_usage=True),
        LangChain("responses", ChatOpenAI, ["json_schema", "function_calling"], use_responses_api=True),
        LangChain("messages", ChatAnthropic, ["json_schema", "function_calling"]),
        Vectors(),
    )
