"""Makes an experiment, waits for its end, and cancels it when nobody waits any more."""

from __future__ import annotations

import secrets
import time
import traceback
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from prompt_gateway_client.command.names import (
    Version,
    push_version,
    require_config,
    require_dataset,
    require_evaluators,
    require_version,
)
from prompt_gateway_client.command.outcome import NotRunError, Outcome, failure
from prompt_gateway_client.command.service import Service
from prompt_gateway_client.errors import PromptGatewayError, UnavailableError
from prompt_gateway_client.http import Answer, Http

_UNFINISHED = ("pending", "running")
_FIRST_LOOK_SECONDS, _MAX_LOOK_SECONDS = 0.2, 5.0
_CANCEL_SECONDS = 15.0
ENDED = "experiment_ended"


class ExperimentRun:
    """One run of the command. `options` are those of its parser; `note` tells a person how it goes on."""

    def __init__(self, http: Http, options: Namespace, base_url: str, note: Callable[[str], None]) -> None:
        self._http, self._options, self._note = http, options, note
        self._service = Service(http, timeout=options.timeout, note=note)
        self._pages = f"{base_url.rstrip('/')}/admin/experiments/"
        # By this name an experiment is found whose answer was lost.
        self._name = ""
        self._outcome = Outcome(options.config, options.fail_on)

    def run(self) -> Outcome:
        """Returns what was found. Whatever goes wrong is the outcome's error."""
        try:
            self._try()
        except NotRunError as error:
            self._fail(error.code, str(error), cancels=error.code == "timeout")
        except KeyboardInterrupt:
            self._fail("interrupted", "The command was interrupted.", cancels=True)
        except UnavailableError as error:
            is_late = self._service.seconds_left <= 0
            self._fail("timeout" if is_late else error.code or "unavailable", str(error), cancels=is_late)
        except PromptGatewayError as error:
            self._fail(error.code, str(error), cancels=False)
        except Exception as error:
            self._note(traceback.format_exc())
            self._fail(**failure(error), cancels=True)
        return self._outcome

    def _try(self) -> None:
        service, options, outcome = self._service, self._options, self._outcome
        dataset = require_dataset(service, options.dataset)
        config = require_config(service, options.config)
        evaluators = require_evaluators(service, options.evaluator)
        baseline = require_version(service, config, options.against)
        target = self._target(config)
        outcome.version, outcome.against = target.number, baseline.number
        if target.id == baseline.id:
            self._note(f"Version {target.number} of {options.config} would be compared with itself: nothing to try.")
            return
        self._create(dataset["id"], evaluators, [{"version_id": baseline.id}, {"version_id": target.id}])
        self._wait()
        self._require_verdict()

    def _target(self, config: dict[str, Any]) -> Version:
        file = self._options.prompt_file
        if file is None:
            return require_version(self._service, config, self._options.version)
        found, is_new = push_version(self._service, config, file)
        self._note(f"{file} is {'now ' if is_new else ''}version {found.number} of {config['name']}.")
        return found

    def _create(self, dataset_id: str, evaluators: list[dict[str, Any]], candidates: list[dict[str, Any]]) -> None:
        options = self._options
        self._name = f"{self._outcome.title} ({secrets.token_hex(4)})"
        body: dict[str, Any] = {
            "name": self._name,
            "dataset_id": dataset_id,
            "candidates": candidates,
            "baseline": "A" if len(candidates) > 1 else None,
            "evaluators": evaluators,
            "repeats": options.repeats,
            "margin": options.margin,
            "reuse": not options.no_reuse,
        }
        if options.items is not None:
            body["item_limit"] = options.items
        if options.max_cost is not None:
            body["max_cost_usd"] = float(options.max_cost)
        self._take(self._service.call("POST", "experiments", body=body, done=self._made).body)
        self._note(f"Experiment {self._name}: {self._outcome.url}")

    def _made(self) -> Answer | None:
        """Returns the experiment that was made by a call whose answer did not arrive."""
        answer = self._http.send("GET", "experiments")
        found = next((entry for entry in answer.body["results"] if entry["name"] == self._name), None)
        return None if found is None else Answer(200, {}, found)

    def _wait(self) -> None:
        wait, told = _FIRST_LOOK_SECONDS, ""
        while self._outcome.field("state") in _UNFINISHED:
            if self._service.seconds_left <= 0:
                raise self._late()
            time.sleep(max(0.0, min(wait, self._service.seconds_left)))
            wait = min(1.5 * wait, _MAX_LOOK_SECONDS)
            self._look()
            entry = self._outcome.experiment or {}
            line = f"{entry['state']}: {entry['done_count']} of {entry['answer_count']} answers"
            if line != told:
                told = line
                self._note(line)

    def _late(self) -> NotRunError:
        return NotRunError("timeout", f"The experiment did not end in {self._options.timeout:g} seconds.")

    def _look(self) -> None:
        self._take(self._service.get(f"experiments/{self._outcome.field('id')}"))

    def _require_verdict(self) -> None:
        state, failure = self._outcome.field("state"), self._outcome.field("failure")
        if state == "failed":
            raise NotRunError(self._outcome.field("failure_code") or "failed", failure or "The experiment failed.")
        if state != "completed":
            raise NotRunError(state, f"The experiment was {state}.")
        if self._outcome.field("verdict") is None:
            raise NotRunError("no_verdict", "The experiment ended without a verdict.")

    def _take(self, entry: dict[str, Any]) -> None:
        self._outcome.experiment = entry
        self._outcome.url = f"{self._pages}{entry['id']}/"

    def _fail(self, code: str, message: str, *, cancels: bool) -> None:
        self._note(message)
        if cancels and self._name:
            self._cancel()
        self._outcome.error = {"code": code, "message": message}

    def _cancel(self) -> None:
        """Ends the experiment, so that nothing more is paid for it."""
        self._service.deadline = time.monotonic() + _CANCEL_SECONDS
        try:
            if self._outcome.experiment is None:
                found = self._service.until_answered(lambda: self._made() or Answer(404, {}, {}))
                if not found.body:
                    return
                self._take(found.body)
            try:
                self._service.call("POST", f"experiments/{self._outcome.field('id')}/cancel", body={})
                self._note("The experiment is cancelled.")
            except PromptGatewayError as error:
                if error.code != ENDED:
                    raise
            self._look()
        except Exception as error:
            self._note(f"The experiment could not be cancelled, and goes on: {error}.")
