"""The prompts that were fetched: fresh, stale while the next answer is fetched, and stale while there is none.

All times are seconds of the client's clock. One flight per prompt: however many callers wait, one read is made.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from prompt_gateway_client.errors import PromptGatewayError, UnavailableError
from prompt_gateway_client.http import Answer
from prompt_gateway_client.prompt import Prompt

_MAX_ENTRIES = 1000
_MAX_REVALIDATIONS = 16
_RETRY_SECONDS = 5.0
_STALE_ON_ERROR_SECONDS = 86_400.0
_NEVER = float("-inf")

Key = TypeVar("Key")


@dataclass
class _Entry:
    prompt: Prompt | None = None
    etag: str = ""
    fresh_until: float = _NEVER
    stale_until: float = _NEVER
    # Until then the prompt is returned when no newer answer can be had.
    usable_until: float = _NEVER
    # The error of the last fetch; none is begun again before `retry_at`.
    error: PromptGatewayError | None = None
    retry_at: float = _NEVER

    def stale(self, now: float) -> Prompt | None:
        """Returns the prompt if it may be returned at once: soon after it was fresh, or after a failure."""
        return self.prompt if now < (self.stale_until if self.error is None else self.usable_until) else None


class PromptCache(Generic[Key]):
    """Keeps prompts. `fetch` is called with a key and the ETag of the last answer, or an empty text."""

    def __init__(self, fetch: Callable[[Key, str], Answer], clock: Callable[[], float], timeout: float) -> None:
        self._fetch, self._clock, self._timeout = fetch, clock, timeout
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._flights: dict[Key, Future[Prompt]] = {}

    def get(self, key: Key) -> Prompt:
        """Returns the prompt within the time limit. Raises PromptGatewayError and UnavailableError."""
        with self._lock:
            now, entry = self._clock(), self._entry(key)
            if entry.prompt is not None and now < entry.fresh_until:
                return entry.prompt
            stale, flight = entry.stale(now), self._flights.get(key)
            may_fetch = now >= entry.retry_at and (stale is None or len(self._flights) < _MAX_REVALIDATIONS)
            if flight is None and may_fetch:
                flight = self._begin(key, entry)
        if stale is not None:
            return stale
        if flight is None:
            raise entry.error.again() if entry.error is not None else UnavailableError("Prompt Gateway gave no answer")
        return self._awaited(flight, entry)

    def _awaited(self, flight: Future[Prompt], entry: _Entry) -> Prompt:
        try:
            return flight.result(self._timeout)
        except (UnavailableError, TimeoutError) as error:
            known = error if isinstance(error, UnavailableError) else UnavailableError("Prompt Gateway is too slow")
            with self._lock:
                self._note_error(entry, known)
                stale = entry.stale(self._clock())
            if stale is None:
                raise known from error
            return stale

    def _entry(self, key: Key) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > _MAX_ENTRIES:
            self._entries.popitem(last=False)
        return entry

    def _begin(self, key: Key, entry: _Entry) -> Future[Prompt]:
        flight: Future[Prompt] = Future()
        self._flights[key] = flight
        # A daemon's thread, since the end of the application does not wait for a fetch.
        threading.Thread(target=self._fly, args=(key, entry, flight), daemon=True).start()
        return flight

    def _fly(self, key: Key, entry: _Entry, flight: Future[Prompt]) -> None:
        try:
            answer = self._fetch(key, entry.etag)
            prompt = _prompt_of(answer, entry.prompt)
        except Exception as error:
            with self._lock:
                self._flights.pop(key, None)
                if isinstance(error, PromptGatewayError):
                    self._note_error(entry, error)
            flight.set_exception(error)
            return
        with self._lock:
            self._flights.pop(key, None)
            self._store(entry, prompt, answer.headers)
        flight.set_result(prompt)

    def _store(self, entry: _Entry, prompt: Prompt, headers: Mapping[str, str]) -> None:
        now, control = self._clock(), headers.get("cache-control", "")
        entry.prompt, entry.error, entry.retry_at = prompt, None, _NEVER
        entry.etag = headers.get("etag", "")
        entry.fresh_until = now + _seconds(control, "max-age", 0)
        entry.stale_until = entry.fresh_until + _seconds(control, "stale-while-revalidate", 0)
        entry.usable_until = entry.fresh_until + _seconds(control, "stale-if-error", _STALE_ON_ERROR_SECONDS)

    def _note_error(self, entry: _Entry, error: PromptGatewayError) -> None:
        if not isinstance(error, UnavailableError):
            # A refusal is an answer: what was fetched before does not count any more.
            entry.prompt, entry.etag = None, ""
        entry.error, entry.retry_at = error.again(), self._clock() + _RETRY_SECONDS


def _prompt_of(answer: Answer, known: Prompt | None) -> Prompt:
    if answer.status == 304 and known is not None:
        return known
    try:
        return Prompt.of_answer(answer.body)
    except (TypeError, ValueError) as error:
        raise UnavailableError(f"Prompt Gateway's answer is no prompt: {error}") from error


def _seconds(control: str, directive: str, default: float) -> float:
    """Returns the seconds of a directive of Cache-Control (RFC 9111, 5.2; RFC 5861)."""
    found = re.search(rf"(?:^|[\s,]){directive}=(\d{{1,9}})(?!\d)", control, re.IGNORECASE)
    return float(found[1]) if found else default
