from __future__ import annotations

import openai
import pytest

from tests.live.conftest import StartService
from tests.waiting import wait_until

_PROMPT = "canary-prompt-7f3a"
_PROVIDER_KEY = "sk-canary-provider-key-7f3a"


def test_log__of_a_whole_run__holds_no_key_and_no_prompt(start_service: StartService) -> None:
    service = start_service({"OPENAI_API_KEY": _PROVIDER_KEY, "LOG_LEVEL": "DEBUG"})
    client = service.openai(max_retries=0, default_headers={"x-svc-session-id": "logged"})
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": _PROMPT}]
    client.chat.completions.create(model="sandbox/echo", messages=messages)
    for _ in client.chat.completions.create(model="sandbox/echo", messages=messages, stream=True):
        pass
    for model in ("sandbox/error-400", "sandbox/error-401", "sandbox/error-503", "sandbox/error-first"):
        with pytest.raises(openai.APIStatusError):
            client.chat.completions.create(model=model, messages=messages)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="svc_canary-wrong-key-7f3a").models.list()
    wait_until(lambda: service.manage("sessions/logged").status_code == 200)
    killed = service.kill("web-1")
    service.wait_for_successor("web-1", killed)

    assert service.stop() == 0

    for secret in (_PROMPT, _PROVIDER_KEY, service.api_key, "svc_canary-wrong-key-7f3a"):
        assert secret not in service.log
    assert "canary" not in service.log
