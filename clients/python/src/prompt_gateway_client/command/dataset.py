"""Adds a file of JSON lines to a data set."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from prompt_gateway_client.command.names import find_dataset
from prompt_gateway_client.command.outcome import NotRunError
from prompt_gateway_client.command.service import Service
from prompt_gateway_client.errors import PromptGatewayError
from prompt_gateway_client.http import Answer, Http

_NDJSON = "application/x-ndjson"
_ITEMS_BETWEEN = 1000


class _Told:
    """A file that tells how many of its lines have been sent."""

    def __init__(self, file: IO[bytes], note: Callable[[str], None]) -> None:
        self._file, self._note = file, note
        self._lines, self._next = 0, _ITEMS_BETWEEN

    def read(self, size: int = -1, /) -> bytes:
        piece = self._file.read(size)
        self._lines += piece.count(b"\n")
        if self._lines >= self._next:
            self._note(f"{self._lines} lines are sent")
            self._next = self._lines - self._lines % _ITEMS_BETWEEN + _ITEMS_BETWEEN
        return piece


def push(http: Http, options: Namespace, note: Callable[[str], None]) -> dict[str, Any]:
    """Adds the items that the data set does not have, as one version, and returns how many; or adds nothing.

    The service checks the file as a whole before it adds anything, and names the line that is wrong. A file may be sent
    again after a lost connection, since its items are known again.
    """
    service = Service(http, timeout=options.timeout, note=note)
    try:
        with Path(options.file).open("rb") as file:
            dataset = find_dataset(service, options.dataset)
            made = dataset is None
            if dataset is None:
                dataset = service.call(
                    "POST", "datasets", body={"name": options.dataset}, done=lambda: _made(service, options.dataset)
                ).body
            try:
                return _added(_send(service, dataset["id"], file, note).body)
            except PromptGatewayError:
                if made:
                    # Nothing is left of a set that was made for a file that is wrong.
                    service.call("DELETE", f"datasets/{dataset['id']}")
                raise
    except OSError as error:
        raise NotRunError("unreadable_file", f"{options.file} cannot be read: {error.strerror}.") from error


def _send(service: Service, dataset_id: str, file: IO[bytes], note: Callable[[str], None]) -> Answer:
    size = file.seek(0, 2)

    def send() -> Answer:
        file.seek(0)
        path, query = f"datasets/{dataset_id}/import", {"only_new": "true"}
        return service.http.upload(path, _Told(file, note), size=size, media_type=_NDJSON, query=query)

    return service.until_answered(send)


def _made(service: Service, name: str) -> Answer | None:
    found = find_dataset(service, name)
    return None if found is None else Answer(200, {}, found)


def _added(body: dict[str, Any]) -> dict[str, Any]:
    dataset = body["dataset"]
    return {
        "dataset_id": dataset["id"],
        "name": dataset["name"],
        "version": dataset["version"],
        "item_count": dataset["item_count"],
        "added": body["added"],
        "already_there": body["left_out"]["already_there"],
    }
