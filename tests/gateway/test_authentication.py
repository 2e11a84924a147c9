"""The keys that may call the gateway: 401 and 403 with their codes, and how soon a change of a key is seen."""

from __future__ import annotations

import uuid

import pytest

from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import ENDPOINT, assert_error, bearer, body


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Basic dXNlcjpwdw==", "svc_x", "Token svc_x"])
def test_key__absent__is_401_missing(gateway: Gateway, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}

    response = gateway.client.post(ENDPOINT, json=body(), headers=headers)

    assert_error(response, 401, "missing_api_key", type="authentication_error")


@pytest.mark.parametrize("key", ["svc_" + "A" * 43, "svc_", "sk-other", "x" * 5000, "schlüssel", "svc_a b"])
def test_key__unknown__is_401_and_reveals_nothing(gateway: Gateway, key: str) -> None:
    response = gateway.client.post(ENDPOINT, json=body(), headers={b"authorization": f"Bearer {key}".encode()})

    message = assert_error(response, 401, "invalid_api_key", type="authentication_error")
    assert key not in message


def test_key__revoked_or_expired_or_unknown__same_answer(service: GatewayService, gateway: Gateway) -> None:
    expired = service.make_key(gateway.project_id, expires_in=-5)
    revoked = service.make_key(gateway.project_id)
    # Otherwise the worker may still be reading the keys of before the revocation, after it has refused this one.
    assert status_once_known(service, gateway, revoked, gateway.port, expected=200) == 200
    service.revoke_key(revoked)
    assert status_once_known(service, gateway, revoked, gateway.port, expected=401) == 401

    answers = [gateway.post(body(), key=key) for key in (expired, revoked, "svc_" + "B" * 43)]

    messages = {assert_error(answer, 401, "invalid_api_key") for answer in answers}
    assert len(messages) == 1


def test_key__without_gateway_scope__is_403(service: GatewayService, gateway: Gateway) -> None:
    key = service.make_key(gateway.project_id, scopes=["manage"])

    response = gateway.post(body(), key=key)

    assert_error(response, 403, "scope_missing", type="permission_error")


def test_key__that_expires_in_use__stops(service: GatewayService, gateway: Gateway) -> None:
    # One of these waits is long enough for a first request, however busy the machine is.
    for seconds in (1, 2, 4, 8, 16):
        key = service.make_key(gateway.project_id, expires_in=seconds)
        served = gateway.post(body(), key=key)
        if served.status_code == 200:
            break
    assert served.status_code == 200

    refused = service.until(lambda: gateway.post(body(), key=key), lambda r: r.status_code != 200)

    assert_error(refused, 401, "invalid_api_key")


def test_project_header__of_the_key__is_served(gateway: Gateway) -> None:
    for value in (gateway.project_id, gateway.project_id.upper()):
        response = gateway.post(body(), headers={"x-project-id": value})

        assert response.status_code == 200, response.text


@pytest.mark.parametrize("value", [str(uuid.UUID(int=7)), "not-a-uuid", "0"])
def test_project_header__of_another_project__is_401(gateway: Gateway, value: str) -> None:
    response = gateway.post(body(), headers={"x-project-id": value})

    assert_error(response, 401, "invalid_project", type="authentication_error")


def test_authentication__comes_before_the_body_is_judged(gateway: Gateway) -> None:
    response = gateway.client.post(ENDPOINT, content=b"{", headers=bearer("svc_" + "C" * 43))

    assert_error(response, 401, "invalid_api_key")


def test_new_key__works_on_every_worker_at_once(service: GatewayService, gateway: Gateway) -> None:
    key = service.make_key(gateway.project_id)

    for port in service.ports:
        assert gateway.post(body(), key=key, port=port).status_code == 200


def test_key__tried_before_it_existed__works_once_it_is_made(service: GatewayService, gateway: Gateway) -> None:
    # Every worker's negative cache holds the key.
    key = service.seeder.call("draw_key")["key"]
    for port in service.ports:
        assert gateway.post(body(), key=key, port=port).status_code == 401

    # The key is created.
    service.seeder.call("make_given_key", project_id=gateway.project_id, key=key, scopes=["gateway"])

    # Each worker accepts the new key.
    for port in service.ports:
        assert status_once_known(service, gateway, key, port, expected=200) == 200


def test_revoked_key__stops_working_on_every_worker(service: GatewayService, gateway: Gateway) -> None:
    key = service.make_key(gateway.project_id)
    for port in service.ports:
        assert gateway.post(body(), key=key, port=port).status_code == 200

    service.revoke_key(key)

    for port in service.ports:
        assert status_once_known(service, gateway, key, port, expected=401) == 401


def status_once_known(service: GatewayService, gateway: Gateway, key: str, port: int, *, expected: int) -> int:
    return service.until(
        lambda: gateway.post(body(), key=key, port=port).status_code, lambda status: status == expected
    )


def test_models__without_key__is_401(gateway: Gateway) -> None:
    response = gateway.client.get("/api/gateway/v1/models")

    assert_error(response, 401, "missing_api_key")
