"""Runs the cases of a client's variants, and writes what the client made of the answers as JSON.

A script runs in the clients' own environment, so it imports nothing of the project.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

MODEL = os.environ.get("MODEL", "sandbox/echo")
REASONING_MODEL = "sandbox/reasoning"
UNKNOWN_MODEL = "nobody/serves-this"
WRONG_KEY = "svc_wrong"
OTHER_TEXT = "Another text"
NEXT_PROMPT = "Go on"
# The gateway's bounds of the field are 0 and 2.
BAD_TEMPERATURE = 5.0

Result = dict[str, Any]


def weather_in(city: str) -> str:
    return f"sunny in {city}"


class Refused(ABC):
    """One way of using a client: a class of models, or an API of an SDK. `name` is that of tests/clients/clients.py."""

    name: str

    def bad_key(self, prompt: str) -> Result:
        return self.refused(prompt, key=WRONG_KEY)

    def unknown_model(self, prompt: str) -> Result:
        return self.refused(prompt, model=UNKNOWN_MODEL)

    def refused(self, prompt: str, **options: Any) -> Result:
        try:
            answer = self.ask(prompt, **options)
        except Exception as error:  # The class of the error is what the case is about.
            return error_result(error)
        return {"text": f"no error: {answer!r}"}

    @abstractmethod
    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, **options: Any) -> Any:
        """Sends a request that must be refused. A `key` of None is the environment's."""


class Embeddings(Refused):
    name = "embeddings"

    def embedded(self, prompt: str) -> Result:
        """Returns `vectors`, those of the prompt and of another text."""
        return {"vectors": self.vectors([prompt, OTHER_TEXT])}

    def ask(self, prompt: str, *, key: str | None = None, model: str = MODEL, **options: Any) -> Any:
        return self.vectors([prompt], key=key, model=model)

    @abstractmethod
    def vectors(self, texts: list[str], *, key: str | None = None, model: str = MODEL) -> list[list[float]]: ...


class Variant(Refused):
    """A variant whose answers are texts."""

    @abstractmethod
    def whole(self, prompt: str) -> Result:
        """Returns `text`, and `usage` as (input, output) tokens where the client shows it."""

    @abstractmethod
    def streamed(self, prompt: str) -> Result:
        """Returns `text`, `pieces` (their number), and `usage` where the client shows it."""

    def tools(self, prompt: str) -> Result:
        """Returns `cities`, with which the tool was called, and the `text` that followed its result."""
        raise NotImplementedError

    def tools_streamed(self, prompt: str) -> Result:
        """Returns what `tools` does, from answers that were streamed."""
        raise NotImplementedError

    def turns(self, prompt: str) -> Result:
        """Returns `reasoning` of the answer to the prompt, and the `text` that answers the prompt after it."""
        raise NotImplementedError

    @abstractmethod
    def structured(self, prompt: str) -> Result:
        """Returns `value`, the object that the client made of the answer."""

    def bad_field(self, prompt: str) -> Result:
        return self.refused(prompt, temperature=BAD_TEMPERATURE)


def error_result(error: BaseException) -> Result:
    status = next((found for cause in _causes(error) if (found := _status(cause)) is not None), None)
    return {
        "error": type(error).__name__,
        "status": status,
        "message": " / ".join(str(cause) for cause in _causes(error)),
    }


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def snippet_result(source: str) -> Result:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "docs/clients.md", "exec"), {"__name__": "__main__"})  # noqa: S102 - the page's own example
    return {"printed": printed.getvalue()}


def run(*variants: Refused) -> None:
    """Writes the results into the file RESULTS as JSON: `{case: result}`, where a case that failed has its `traceback`.

    The parent's plan comes in on standard input: `cases` maps a case, `variant.method`, to its prompt, and `snippets`
    a name to its source.
    """
    plan = json.load(sys.stdin)
    known = {variant.name: variant for variant in variants}
    results: dict[str, Result] = {}
    for case, prompt in plan["cases"].items():
        name, method = case.split(".")
        results[case] = _outcome(lambda name=name, method=method, prompt=prompt: getattr(known[name], method)(prompt))
    for name, source in plan["snippets"].items():
        results[name] = _outcome(lambda source=source: snippet_result(source))
    Path(os.environ["RESULTS"]).write_text(json.dumps(results))


def _outcome(case: Any) -> Result:
    try:
        return case()
    except Exception:  # The parent fails the case's test with it.
        return {"traceback": traceback.format_exc()}
