"""The five entrances: each makes a case from a seed, sends it, and checks its answer."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import Any

import httpx2
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fuzzing.exchange import MAX_CASE_BYTES, Answer, Finding, Sent, check, check_envelope, exchange
from tests.fuzzing.mutation import encoded, mutated_bytes, mutated_json
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, read_stream

CORPUS = Path(__file__).parent / "corpus"
JSON = {"content-type": "application/json"}
PROTOBUF = {"content-type": "application/x-protobuf"}


def corpus_seeds(entrance: str) -> list[Any]:
    seeds: list[Any] = json.loads((CORPUS / f"{entrance}.json").read_bytes())
    return seeds


class Entrance(ABC):
    """`seeds` are whole and valid; `send` returns the gateway's answer to a case or raises Finding."""

    name: str

    def __init__(self, gateway: Gateway, client: httpx2.Client | None = None) -> None:
        self.gateway = gateway
        self._client = client or gateway.service.client
        self.seeds = self._seeds()

    def _seeds(self) -> list[Any]:
        return corpus_seeds(self.name)

    @abstractmethod
    def unchanged(self, seed: Any) -> Sent: ...

    @abstractmethod
    def changed(self, random: Random, seed: Any) -> Sent: ...

    def judge(self, answer: Answer) -> None:
        check(answer)
        check_envelope(answer)

    def case(self, random: Random) -> Sent:
        """Returns a changed seed of at most MAX_CASE_BYTES."""
        seed = random.choice(self.seeds)
        sent = self.changed(random, seed)
        return sent if len(sent.body) <= MAX_CASE_BYTES else self.unchanged(seed)

    def send(self, sent: Sent) -> Answer:
        answer = exchange(self.gateway, self._client, sent)
        self.judge(answer)
        return answer


class Completions(Entrance):
    """The entrance `POST /chat/completions`: bodies, headers, and the bytes of the whole HTTP request."""

    name = "gateway"

    def unchanged(self, seed: Any) -> Sent:
        return Sent(path=ENDPOINT, headers={**JSON, **seed.get("headers", {})}, body=encoded(seed["body"]))

    def changed(self, random: Random, seed: Any) -> Sent:
        way = random.random()
        if way < 0.75:
            return self.unchanged({**seed, "body": mutated_json(random, seed["body"], self._bodies())})
        plain = self.unchanged(seed)
        if way < 0.9:
            changed = mutated_bytes(random, plain.body, [encoded(body) for body in self._bodies()])
            return Sent(path=plain.path, headers=plain.headers, body=changed)
        whole = _http_request(plain, {**self.gateway.headers, **plain.headers})
        return Sent(raw=mutated_bytes(random, whole, [whole]))

    def judge(self, answer: Answer) -> None:
        check(answer)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            read_stream(answer.body)
        elif answer.headers.get("content-type", "").startswith("application/json"):
            check_envelope(answer)

    def _bodies(self) -> list[Any]:
        return [seed["body"] for seed in self.seeds]


class Management(Entrance):
    """The entrance of the management API and the agent's chat: seeds name method, path, query and body."""

    name = "management"

    def unchanged(self, seed: Any) -> Sent:
        path = seed["path"].replace("{project}", self.gateway.project_id)
        text = json.dumps(seed["body"]).replace("{project}", self.gateway.project_id) if "body" in seed else ""
        return Sent(method=seed["method"], path=path, headers=JSON if text else {}, body=text.encode())

    def changed(self, random: Random, seed: Any) -> Sent:
        if "body" not in seed or random.random() < 0.2:
            return self._with_other_path(random, seed)
        donors = [other["body"] for other in self.seeds if "body" in other]
        if random.random() < 0.85:
            return self.unchanged({**seed, "body": mutated_json(random, seed["body"], donors)})
        plain = self.unchanged(seed)
        changed = mutated_bytes(random, plain.body, [encoded(donor) for donor in donors])
        return Sent(method=plain.method, path=plain.path, headers=plain.headers, body=changed)

    def _with_other_path(self, random: Random, seed: Any) -> Sent:
        plain = self.unchanged(seed)
        changed = mutated_bytes(random, plain.path.encode(), [other["path"].encode() for other in self.seeds])
        # A client's library escapes characters that a path may not hold; odd ids, queries and escapes are left.
        path = "".join(chr(byte) if 0x21 <= byte <= 0x7E and byte != 0x23 else f"%{byte:02X}" for byte in changed)
        return Sent(method=plain.method, path=f"/{path.lstrip('/')}", headers=plain.headers, body=plain.body)

    def judge(self, answer: Answer) -> None:
        check(answer)
        if answer.headers.get("content-type", "").startswith("application/json"):
            check_envelope(answer)


class Telemetry(Entrance):
    name = "otlp"

    def unchanged(self, seed: Any) -> Sent:
        path = f"/api/otlp/v1/{seed['signal']}"
        if "base64" in seed:
            return Sent(path=path, headers={"content-type": seed["type"]}, body=base64.b64decode(seed["base64"]))
        return Sent(path=path, headers=JSON, body=encoded(seed["body"]))

    def changed(self, random: Random, seed: Any) -> Sent:
        plain = self.unchanged(seed)
        documents = [other["body"] for other in self.seeds if "body" in other]
        way = random.random()
        if "base64" in seed or way < 0.2:
            body = mutated_bytes(random, plain.body, [encoded(document) for document in documents])
            return Sent(path=plain.path, headers=plain.headers, body=body)
        if way < 0.6:
            return Sent(path=plain.path, headers=JSON, body=encoded(mutated_json(random, seed["body"], documents)))
        messages = [_protobuf(other) for other in self.seeds if "body" in other]
        body = mutated_bytes(random, _protobuf(seed), messages)
        return Sent(path=plain.path, headers=PROTOBUF, body=body)

    def judge(self, answer: Answer) -> None:
        """An export is stored, in part or whole, or refused; the error envelope is OTLP's own."""
        check(answer)
        if answer.status not in (200, 400):
            raise Finding(f"status {answer.status}: {answer.body[:300]!r}")


class Mcp(Entrance):
    name = "mcp"

    def unchanged(self, seed: Any) -> Sent:
        headers = {**JSON, "accept": "application/json, text/event-stream"}
        return Sent(path="/api/agent/mcp", headers=headers, body=encoded(seed))

    def changed(self, random: Random, seed: Any) -> Sent:
        plain = self.unchanged(seed)
        if random.random() < 0.85:
            return self.unchanged(mutated_json(random, seed, self.seeds))
        changed = mutated_bytes(random, plain.body, [encoded(other) for other in self.seeds])
        return Sent(path=plain.path, headers=plain.headers, body=changed)

    def judge(self, answer: Answer) -> None:
        check(answer)
        if answer.status == 200 and answer.headers.get("content-type", "").startswith("application/json"):
            reply = json.loads(answer.body)
            for message in reply if isinstance(reply, list) else [reply]:
                if message.get("jsonrpc") != "2.0":
                    raise Finding(f"no JSON-RPC: {message!r}")
                if message.get("error", {}).get("code") == -32603:
                    raise Finding(f"an internal error: {message!r}")


def _protobuf(seed: Any) -> bytes:
    message = ExportTraceServiceRequest() if seed["signal"] == "traces" else ExportLogsServiceRequest()
    json_format.ParseDict(_with_ids_as_base64(seed["body"]), message)
    return message.SerializeToString()


def _with_ids_as_base64(value: Any) -> Any:
    """OTLP writes ids in hexadecimal where JSON of protobuf has base64
    (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding)."""
    if isinstance(value, list):
        return [_with_ids_as_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(item)).decode()
        if name in ("traceId", "spanId", "parentSpanId")
        else _with_ids_as_base64(item)
        for name, item in value.items()
    }


def _http_request(sent: Sent, headers: dict[str, str]) -> bytes:
    fields = {"host": "127.0.0.1", **headers, "content-length": str(len(sent.body)), "connection": "close"}
    lines = [f"{sent.method} {sent.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + sent.body
