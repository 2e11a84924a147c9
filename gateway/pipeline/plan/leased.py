from __future__ import annotations

from gateway.limits.allowances import Allowance
from gateway.limits.claims import Admission, Claim
from gateway.limits.limiter import Limiter
from gateway.limits.minute_limits import Caller
from gateway.pipeline.callers import caller_for
from gateway.pipeline.reservation import completion_tokens, cost_units, tokens_of_prompt
from gateway.protocol.wire import ChatCompletionRequest
from gateway.snapshot.store import Found
from integrations.pricing.cost import Price

# Clients choose the names of sessions and users.
_MAX_SUBJECTS = 256

Sender = tuple[str, str]


class LeasedLimits:
    __slots__ = ("_found", "_limiter", "_limits", "_limits_users", "_of_session", "_prices", "_project", "_subjects")

    def __init__(self, limiter: Limiter, found: Found, price: Price | None) -> None:
        snapshot, _ = found
        self._limiter = limiter
        self._found = found
        self._prices = (price,)
        self._project, self._limits = snapshot.id_text, snapshot.limits
        self._limits_users = snapshot.limits_users
        self._of_session = snapshot.limits.session_budget_usd is not None
        # The callers that are known, and what was leased of their limits, by session and user.
        self._subjects: dict[tuple[str, str], tuple[Caller, Allowance]] = {}

    def reserved(self, body: bytes, request: ChatCompletionRequest) -> tuple[int, int]:
        prompt, completion = tokens_of_prompt(body, request), completion_tokens(request)
        return prompt + completion, cost_units(self._prices, prompt, completion)

    def admit(self, request_id: str, arrived_us: int, sender: Sender, reserved: tuple[int, int]) -> Admission | None:
        session_id, user_id = sender
        tokens, cost = reserved
        name = session_id if self._of_session else "", user_id if self._limits_users else ""
        known = self._subjects.get(name)
        if known is not None:
            caller, allowance = known
            claim = Claim(request_id, self._project, session_id, arrived_us, tokens, cost, caller)
            if allowance.lends(claim):
                return None if allowance.month_is_spent else self._limiter.take(allowance, claim)
            del self._subjects[name]
        else:
            caller = caller_for(*self._found, name[1])
            claim = Claim(request_id, self._project, session_id, arrived_us, tokens, cost, caller)
        found = self._limiter.find_leased(self._limits, claim)
        if found is None:
            return None
        if len(self._subjects) >= _MAX_SUBJECTS:
            self._subjects.clear()
        self._subjects[name] = caller, found
        return None if found.month_is_spent else self._limiter.take(found, claim)
