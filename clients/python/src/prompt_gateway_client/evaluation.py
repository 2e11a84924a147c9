"""Runs an application over a data set, and has the service score and compare its answers."""

from __future__ import annotations

import asyncio
import inspect
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from prompt_gateway_client.command.experiment import ENDED, ExperimentRun
from prompt_gateway_client.command.names import named_evaluator, require_dataset, require_evaluators
from prompt_gateway_client.command.outcome import NotRunError, Outcome
from prompt_gateway_client.errors import PromptGatewayError
from prompt_gateway_client.http import Http

_MAX_ERROR_CHARACTERS = 1000
_GIVEN = "answer_given"
# Pages of items with their texts, which have to fit into an answer of the service.
_LARGE_ITEMS = 100


@dataclass(frozen=True)
class EvaluationItem:
    """An input of the data set. Calls of the gateway that send `headers` form one session of the request log."""

    id: str
    messages: list[dict[str, Any]]
    variables: dict[str, Any]
    parameters: dict[str, Any]
    expected: Any
    tags: list[str]
    session_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {"x-svc-session-id": self.session_id}


Application = Callable[[EvaluationItem], Any]
"""Returns a text, or a mapping with fields of the answer (`content`, `tool_calls`, `request_id`, `cost_usd`, …); may be
a coroutine function. What it raises is an answer that counts as a bad one."""


def evaluate(http: Http, base_url: str, application: Application, **options: Any) -> Outcome:
    """`options` are those of `PromptGateway.evaluate`."""
    evaluators = [_named(text) for text in options.pop("evaluators")]
    parallel, note = options.pop("parallel"), options.pop("note")
    given = Namespace(config=options.pop("name"), evaluator=evaluators, no_reuse=not options.pop("reuse"), **options)
    return _Evaluation(http, given, base_url, note, application, parallel).run()


def _named(text: str) -> Any:
    try:
        return named_evaluator(text)
    except ArgumentTypeError as error:
        raise ValueError(str(error)) from None


class _Evaluation(ExperimentRun):
    def __init__(
        self,
        http: Http,
        options: Namespace,
        base_url: str,
        note: Callable[[str], None],
        application: Application,
        parallel: int,
    ) -> None:
        super().__init__(http, options, base_url, note)
        self._application, self._parallel = application, parallel
        self._has_ended = False

    def _try(self) -> None:
        options, service = self._options, self._service
        dataset = require_dataset(service, options.dataset)
        evaluators = require_evaluators(service, options.evaluator)
        against = options.against
        candidates = [] if against is None else [{"application": against} if isinstance(against, str) else against]
        self._create(dataset["id"], evaluators, [*candidates, {"application": options.config}])
        self._answer_all("AB"[len(candidates)])
        self._wait()
        if self._outcome.field("baseline") is not None:
            self._require_verdict()

    def _answer_all(self, label: str) -> None:
        awaited = [
            (item, one)
            for item in self._service.listed(f"experiments/{self._outcome.field('id')}/items")
            for one in item["answers"]
            if one["state"] == "awaited"
        ]
        missing = [item for item, one in awaited if one["label"] != label]
        if missing:
            problem = f"{self._options.against!r} has no answers to {len(missing)} of the items: evaluate it first."
            raise NotRunError("no_answers", problem)
        inputs = self._inputs()
        self._note(f"{self._options.config} answers {len(awaited)} times")
        with ThreadPoolExecutor(self._parallel) as pool:
            works = [pool.submit(self._answer, label, item, one["repeat"], inputs) for item, one in awaited]
            try:
                for work in works:
                    work.result(max(0.0, self._service.seconds_left))
            except TimeoutError:
                raise self._late() from None
            finally:
                for work in works:
                    work.cancel()

    def _inputs(self) -> Mapping[str, dict[str, Any]]:
        dataset = self._outcome.field("dataset")
        path, version = f"datasets/{dataset['id']}/items", str(dataset["version"])
        return {entry["id"]: entry for entry in self._service.listed(path, page=_LARGE_ITEMS, version=version)}

    def _answer(self, label: str, item: dict[str, Any], repeat: int, inputs: Mapping[str, dict[str, Any]]) -> None:
        entry = inputs.get(item["dataset_item_id"])
        if entry is None or self._has_ended:  # An item that was erased meanwhile is not awaited any more.
            return
        path = f"experiments/{self._outcome.field('id')}/items/{item['position']}"
        session_id = f"evaluation-{self._outcome.field('id')}-{item['position']}-{repeat}"
        body = {"label": label, "repeat": repeat, **_answered(self._application, _item(entry, session_id))}
        try:
            self._service.call("PUT", f"{path}/answer", body=body)
        except PromptGatewayError as error:
            if error.code not in (ENDED, _GIVEN):
                raise
            # An experiment that is sure of its verdict stops early.
            self._has_ended |= error.code == ENDED


def _item(entry: Mapping[str, Any], session_id: str) -> EvaluationItem:
    return EvaluationItem(
        id=entry["id"],
        messages=entry["messages"],
        variables=entry["variables"] or {},
        parameters=entry["parameters"] or {},
        expected=entry["expected"],
        tags=entry["tags"],
        session_id=session_id,
    )


def _answered(application: Application, item: EvaluationItem) -> dict[str, Any]:
    began = time.monotonic()
    try:
        found = application(item)
        if inspect.isawaitable(found):
            found = asyncio.run(_awaited(found))
        given = {"content": found} if isinstance(found, str) else dict(found)
    except Exception as error:
        given = {"error": f"{type(error).__name__}: {error}"[:_MAX_ERROR_CHARACTERS]}
    return {"latency_ms": round(1000 * (time.monotonic() - began)), **given}


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found
