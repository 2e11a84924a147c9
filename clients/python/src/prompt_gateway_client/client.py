"""The client of applications: prompts, feedback and scores."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from prompt_gateway_client.cache import PromptCache
from prompt_gateway_client.command.outcome import FailOn, Outcome
from prompt_gateway_client.errors import PromptGatewayError, UnavailableError
from prompt_gateway_client.evaluation import Application, evaluate
from prompt_gateway_client.http import Answer, Http
from prompt_gateway_client.prompt import Prompt

_NOT_FOUND = 404
_EVALUATION_CALL_SECONDS = 30.0


class _Question(NamedTuple):
    """The parameters of a fetch; `variables` are JSON, and None where the texts are fetched as they are written."""

    name: str
    label: str | None
    version: int | None
    variables: str | None
    user_id: str | None
    session_id: str | None


class PromptGateway:
    """A client of one project, which threads may share: one for the whole application, so that they share prompts.

    `timeout` bounds a call, in seconds. `clock` gives the seconds by which prompts become old.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        project_id: str,
        *,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base_url, self._api_key, self._project_id = base_url, api_key, project_id
        self._http = Http(base_url, api_key, project_id, timeout)
        self._prompts: PromptCache[_Question] = PromptCache(self._fetch, clock, timeout)

    def get_prompt(
        self,
        name: str,
        *,
        label: str | None = None,
        version: int | None = None,
        variables: Mapping[str, Any] | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        fallback: Prompt | str | None = None,
    ) -> Prompt:
        """Returns the prompt that `label` or `version` names, or the active one, which a rollout decides for the user
        or the session. With `variables` it is rendered.

        `fallback`, a prompt or a system's text, is returned when there is no usable answer and none was kept, and when
        the service knows no such prompt. Raises UnavailableError without it, and PromptGatewayError for what is wrong
        in the call, as a missing variable.
        """
        values = None if variables is None else json.dumps(dict(variables), sort_keys=True)
        try:
            return self._prompts.get(_Question(name, label, version, values, user_id, session_id))
        except PromptGatewayError as error:
            if fallback is None or not (isinstance(error, UnavailableError) or error.status == _NOT_FOUND):
                raise
            return Prompt.of_text(name, fallback) if isinstance(fallback, str) else fallback

    def feedback(
        self,
        session_id: str,
        *,
        score: int | None = None,
        text: str | None = None,
        request_id: str | None = None,
        edited: bool = False,
        token: str | None = None,
    ) -> None:
        """Gives feedback on a session, or on the answer to one of its requests: a score from 1 to 5, a text, or
        `edited`, that the answer to this request was changed before it was used.
        `request_id` is what that answer had in its header `x-request-id`. A key with no scope but `feedback:write`
        needs a token of the session or the request."""
        body = {"project_id": self._project_id, "score": score, "text": text}
        if request_id is not None:
            body["request_id"] = request_id
        if edited:
            body["edited"] = True
        headers = {} if token is None else {"x-svc-feedback-token": token}
        self._http.send("POST", f"sessions/{quote(session_id, safe='')}/feedback", body=body, headers=headers)

    def feedback_token(self, session_id: str, *, request_id: str | None = None, expires_in: int = 3600) -> str:
        """Returns a token with which a browser gives feedback on this session, or on the answer to one request alone,
        for `expires_in` seconds."""
        path = f"sessions/{quote(session_id, safe='')}/feedback-token"
        body: dict[str, Any] = {"expires_in": expires_in}
        if request_id is not None:
            body["request_id"] = request_id
        return str(self._http.send("POST", path, body=body).body["token"])

    def score(self, request_id: str, score_name: str, score_value: float | bool, **more: Any) -> None:
        """Records a score of a request. `more` are the score's other fields, as `score_id`, `score_type`, `reason`."""
        fields = {"request_id": request_id, "score_name": score_name, "score_value": score_value, **more}
        self._http.send("POST", "scores", body={"project_id": self._project_id, **fields})

    def evaluate(
        self,
        dataset: str,
        application: Application,
        *,
        name: str,
        evaluators: Sequence[str],
        against: str | Mapping[str, Any] | None = None,
        items: int | None = None,
        repeats: int = 1,
        margin: float = 0.1,
        fail_on: FailOn = "not-passing",
        max_cost: float | None = None,
        reuse: bool = True,
        parallel: int = 4,
        timeout: float = 3600.0,
        note: Callable[[str], None] = lambda line: None,
    ) -> Outcome:
        """Runs your own code over the items of a data set; the service scores its answers and gives a verdict.

        `name` is the version of your application. `against` is an earlier one, whose answers are there, or a candidate
        of the gateway such as `{"model": "openai/gpt-4o"}`; without it there are scores and no verdict. `evaluators`
        are written as for `svc experiments run`. `timeout` bounds the whole run, in seconds. The outcome has the same
        report and exit code as the command; whatever goes wrong is its `error`. Raises ValueError for an evaluator
        whose options are wrong. The key needs the scope `manage`.
        """
        http = Http(self._base_url, self._api_key, self._project_id, min(timeout, _EVALUATION_CALL_SECONDS))
        return evaluate(
            http, self._base_url, application,
            dataset=dataset, name=name, evaluators=evaluators, against=against, items=items, repeats=repeats,
            margin=margin, fail_on=fail_on, max_cost=max_cost, reuse=reuse, parallel=parallel, timeout=timeout,
            note=note,
        )  # fmt: skip

    def _fetch(self, question: _Question, etag: str) -> Answer:
        parameters = {name: value for name, value in question._asdict().items() if value is not None}
        name, variables = parameters.pop("name"), parameters.pop("variables", None)
        if variables is not None:
            # Values are sent in a body: proxies and logs keep URLs.
            body = {**parameters, "variables": json.loads(variables)}
            return self._http.send("POST", f"prompts/{quote(name, safe='')}/render", body=body)
        headers = {"If-None-Match": etag} if etag else {}
        return self._http.send("GET", "prompts", query={"name": name, **parameters}, headers=headers)


class AsyncPromptGateway:
    """The same client for asyncio: each call waits in a thread. Share the prompts by passing the client itself."""

    def __init__(self, client: PromptGateway) -> None:
        self._client = client

    async def get_prompt(self, name: str, **options: Any) -> Prompt:
        """Returns what `PromptGateway.get_prompt` returns."""
        return await asyncio.to_thread(self._client.get_prompt, name, **options)

    async def feedback(self, session_id: str, **given: Any) -> None:
        """Gives feedback as `PromptGateway.feedback` does."""
        await asyncio.to_thread(self._client.feedback, session_id, **given)

    async def score(self, request_id: str, score_name: str, score_value: float | bool, **more: Any) -> None:
        """Records a score as `PromptGateway.score` does."""
        await asyncio.to_thread(self._client.score, request_id, score_name, score_value, **more)

    async def evaluate(self, dataset: str, application: Application, **options: Any) -> Outcome:
        """Runs an evaluation as `PromptGateway.evaluate` does."""
        return await asyncio.to_thread(self._client.evaluate, dataset, application, **options)
