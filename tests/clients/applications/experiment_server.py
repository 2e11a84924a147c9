from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_OID, uuid5

from tests.clients.applications.answers import JSON, Answered, check_all, entry, failure, page
from tests.clients.applications.prompt_server import Received, send

KEY = "svc_secret_of_the_pipeline"
EXPERIMENT_ID = "0000000e-0000-4000-8000-000000000000"
EVALUATOR: dict[str, Any] = {
    "title": "tone@2",
    "required": True,
    "must_pass": False,
    "min_rate": None,
    "passes": True,
    "target_mean": 0.9124,
    "baseline_mean": 0.9049,
    "difference": 0.0075,
    "low": -0.0213,
    "high": 0.0351,
    "wins": 12,
    "ties": 180,
    "losses": 8,
    "pairs": 200,
    "target_missing": 0,
    "baseline_missing": 1,
    "e_worse": 0.2,
    "e_not_worse": 31.5,
    "good_rate": 0.9124,
    "newly_failed": [],
    "newly_failed_count": 0,
    "unscored": [{"reason": "judge_failed", "target": 0, "baseline": 1}],
}
BROKEN = {**EVALUATOR, "title": "schema <1>@1", "must_pass": True, "passes": False, "min_rate": 0.9}
BROKEN |= {"difference": -0.1214, "newly_failed": [3, 17], "newly_failed_count": 12}


@dataclass
class ExperimentServer:
    base_url: str = ""
    received: list[Received] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    # The fields that the experiment has once it has ended.
    end: dict[str, Any] = field(default_factory=dict)
    # Looks at the experiment that find it under way.
    looks: int = 2
    # What becomes of the next requests: `lost` is done without an answer, `busy` is 503, `refused` is 409.
    faults: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    sets: list[dict[str, Any]] = field(default_factory=lambda: [_dataset("regression")])
    made: dict[str, Any] | None = None
    asked: threading.Event = field(default_factory=threading.Event)

    def ends_with(self, verdict: str, *evaluators: dict[str, Any]) -> None:
        target = {
            "label": "B",
            "title": "support 5",
            "verdict": verdict,
            "explanation": "Because | so.",
            "e_worse": 1.0,
            "evaluators": list(evaluators or (EVALUATOR,)),
            "worst_items": [{"position": 7, "difference": -0.75, "scores": {}}],
            "worse_tags": [{"evaluator": "tone@2", "tag": "de", "pairs": 40, "difference": -0.2125}],
        }
        report = {
            "items_judged": 200,
            "item_count": 400,
            "targets": [target],
        }
        self.end = {"state": "completed", "verdict": verdict, "report": report, "stopped_early": True}

    def bodies(self, method: str, path: str) -> list[Any]:
        return [one.body for one in self.received if (one.method, one.path.partition("?")[0]) == (method, path)]

    def answer(  # noqa: C901  # a row for each operation
        self, method: str, path: str, query: dict[str, str], body: Any
    ) -> tuple[int, Any]:
        match (method, path.removeprefix("/api/llm/").split("/")):
            case "GET", ["datasets"]:
                return 200, page(self.sets)
            case "POST", ["datasets"]:
                self.sets.append(_dataset(body["name"]))
                return 201, self.sets[-1]
            case "DELETE", ["datasets", found]:
                self.sets = [one for one in self.sets if one["id"] != found]
                return 204, None
            case "POST", ["datasets", found, "import"]:
                return self._import(found, body)
            case "GET", ["prompts", "configs"]:
                return 200, page([_config()] if query["name"] == "support" else [])
            case "GET", ["prompts", "configs", _, "versions"]:
                number = int(query["version_number"])
                return 200, page([_version(number)] if number <= 5 else [])
            case "POST", ["prompts", "configs", _, "versions", "from-file"]:
                number = 3 if "unchanged" in body["text"] else 6
                return 201 if number == 6 else 200, _version(number)
            case "GET", ["evaluators"]:
                return 200, page([_evaluator("e1", "tone", 2), _evaluator("e2", "schema:a@b", 1)])
            case "POST", ["experiments"]:
                self.made = {"name": body["name"]}
                return 201, self._entry()
            case "GET", ["experiments"]:
                return 200, page([self._entry()] if self.made else [])
            case "GET", ["experiments", _]:
                self.looks -= 1
                self.asked.set()
                return 200, self._entry()
            case "POST", ["experiments", _, "cancel"]:
                self.end = {"state": "cancelled", "verdict": None}
                return 200, self._entry()
        raise LookupError(f"nothing is at {method} {path}")

    def _import(self, dataset_id: str, body: bytes) -> tuple[int, Any]:
        row = next(one for one in self.sets if one["id"] == dataset_id)
        for number, line in enumerate(body.splitlines(), 1):
            try:
                json.loads(line)
            except ValueError:
                message = f"line {number}: Is not JSON."
                return 400, failure(message, "invalid_dataset_item", "invalid_request_error")
        row["item_count"] += len(body.splitlines())
        row["version"] += 1
        left_out = entry("LeftOutRequests", already_there=0)
        return 201, entry("AddedItems", added=len(body.splitlines()), left_out=left_out, dataset=row)

    def _entry(self) -> dict[str, Any]:
        begun = {
            "id": EXPERIMENT_ID,
            "state": "running",
            "verdict": None,
            "failure": None,
            "failure_code": None,
            "done_count": 40,
            "answer_count": 800,
            "spent_usd": 0.1234,
            "stopped_early": False,
            "report": None,
            "started_at": "2026-11-27T10:00:00.250000Z",
            "ended_at": None,
            "dataset": {"id": known_id("d"), "name": "regression", "version": 7, "is_current": True},
            **(self.made or {}),
        }
        ended = {"ended_at": "2026-11-27T10:00:12.750000Z", **self.end}
        has_ended = (self.end and self.looks < 0) or self.end.get("state") == "cancelled"
        return {**entry("ExperimentDetail", **begun), **(ended if has_ended else {})}


def known_id(name: str) -> str:
    return str(uuid5(NAMESPACE_OID, name))


def _config() -> dict[str, Any]:
    version = {"active_version_id": known_id("v3"), "active_version_number": 3}
    return entry("Config", id=known_id("c"), name="support", **version)


def _version(number: int) -> dict[str, Any]:
    return entry("PromptVersionEntry", id=known_id(f"v{number}"), version_number=number)


def _evaluator(short: str, name: str, newest: int) -> dict[str, Any]:
    versions = [entry("EvaluatorVersion", number=number) for number in range(newest, 0, -1)]
    return entry("Evaluator", id=known_id(short), name=name, versions=versions)


def _dataset(name: str) -> dict[str, Any]:
    return entry("DatasetEntry", id=known_id(name), name=name, version=0, item_count=0)


def _serve(server: ExperimentServer, handler: BaseHTTPRequestHandler) -> None:
    raw = _body(handler)
    is_json = handler.headers.get("Content-Type") == "application/json"
    body = json.loads(raw) if is_json and raw else raw
    server.received.append(Received(handler.command, handler.path, dict(handler.headers.items()), body))
    at = urlsplit(handler.path)
    query = {name: values[0] for name, values in parse_qs(at.query).items()}
    faults = server.faults.get((handler.command, at.path.removeprefix("/api/llm/")), [])
    answer: Any
    fault = faults.pop(0) if faults else ""
    if fault == "busy":
        status, answer = 503, failure("Starting.", "service_unavailable", "api_error")
    elif fault == "refused":
        message = f"Too many experiments of {KEY}."
        status, answer = 409, failure(message, "too_many_experiments", "invalid_request_error")
    else:
        status, answer = server.answer(handler.command, at.path, query, body)
    if fault == "lost":
        handler.close_connection = True
        return
    sent = b"" if answer is None else json.dumps(answer).encode()
    server.answered.append(Answered(handler.command, handler.path, status, sent))
    send(handler, status, sent, content_type=JSON)


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    found = b""
    while size := int(handler.rfile.readline(), 16):
        found += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return found


@contextmanager
def experiment_server() -> Iterator[ExperimentServer]:
    server = ExperimentServer()

    class Handler(BaseHTTPRequestHandler):
        do_GET = do_POST = do_DELETE = lambda self: _serve(server, self)

        def log_message(self, *_: Any) -> None:
            """Writes no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server.base_url = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
    check_all(server.answered)
