from __future__ import annotations

from typing import Any

import instructor
from cases import MODEL, Result, Variant, run
from openai import OpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str
    days: int


class Instructor(Variant):
    def __init__(self, name: str, mode: instructor.Mode) -> None:
        self.name = name
        self.mode = mode

    def create(self, prompt: str, key: str | None = None, **options: Any) -> Any:
        client = instructor.from_openai(OpenAI(api_key=key), mode=self.mode)
        messages = [{"role": "user", "content": prompt}]
        given = {"model": MODEL, "response_model": City, "max_retries": 0, **options}
        return client.chat.completions.create(messages=messages, **given)

    def whole(self, prompt: str) -> Result:
        return self.structured(prompt)

    def streamed(self, prompt: str) -> Result:
        partials = list(self.create(prompt, response_model=instructor.Partial[City], stream=True))
        return {"value": partials[-1].model_dump(), "pieces": len(partials)}

    def structured(self, prompt: str) -> Result:
        return {"value": self.create(prompt).model_dump()}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, temperature: float | None = None) -> Any:
        options = {} if temperature is None else {"temperature": temperature}
        return self.create(prompt, key, model=model, **options)


if __name__ == "__main__":
    run(
        Instructor("tools", instructor.Mode.TOOLS),
        Instructor("json_schema", instructor.Mode.JSON_SCHEMA),
        Instructor("responses_tools", instructor.Mode.RESPONSES_TOOLS),
    )
