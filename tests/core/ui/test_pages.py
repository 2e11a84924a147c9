from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.http import HttpRequest
from django.test import Client, RequestFactory

from core.errors import ServiceUnavailableError
from core.models import Membership, Project
from core.roles import Role
from core.ui import attempts
from core.ui import panels as kit
from core.ui.panels import Panel, PanelStream, marker, page_response, panel_response
from tests.factories.core import make_project, make_staff
from tests.waiting import wait_until

PAGE = "/admin/tables/"


@pytest.fixture
def reader(project: Project) -> User:
    return make_staff(Role.READER, project)


def panel(name: str, load: Any) -> Panel:
    return Panel(name, name.title(), "ui/empty.html", load)


def says(text: str) -> Any:
    return lambda: {"empty": {"text": text}}


def page(*panels: Panel) -> PanelStream:
    text = "<main>" + "".join(f"<h2>{one.title}</h2>{marker(one.name)}" for one in panels) + "</main>"
    response = page_response(RequestFactory().get("/admin/"), text, panels, {})
    assert isinstance(response, PanelStream)
    return response


def served_by_asgi(response: PanelStream) -> list[str]:
    async def parts() -> list[str]:
        return [part.decode() async for part in response]

    return asyncio.run(parts())


def test_panels__served__stand_in_their_places() -> None:
    def made() -> PanelStream:
        return page(panel("first", says("one")), panel("second", says("two")))

    in_turn = b"".join(made()).decode()
    assert in_turn.index("one") < in_turn.index("<h2>Second") < in_turn.index("two") < in_turn.index("</main>")
    assert "".join(served_by_asgi(made())) == in_turn


def test_panels__one_fails__says_so_and_the_others_stand(caplog: pytest.LogCaptureFixture) -> None:
    text = "a secret"

    def away() -> Any:
        raise ServiceUnavailableError("The analytics store does not answer.")

    def defect() -> Any:
        raise KeyError(text)

    shown = "".join(served_by_asgi(page(panel("a", away), panel("b", defect), panel("c", says("here")))))

    assert "The analytics store does not answer." in shown
    assert "Not available now." in shown
    assert "here" in shown
    assert shown.count("Try again") == 2
    assert text not in shown + caplog.text
    assert "KeyError" in caplog.text


def test_panels__one_is_late__the_page_ends_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "PANEL_SECONDS", 0.05)
    release = threading.Event()

    def waits() -> Any:
        release.wait()
        return {}

    try:
        parts = served_by_asgi(page(panel("late", waits), panel("next", says("here"))))
    finally:
        release.set()

    assert parts[0] == "<main><h2>Late</h2>"
    assert "Still loading." in parts[1]
    assert "problem" not in parts[1]
    assert "here" in parts[3]


def asked_for(reader: User, load: Any, path: str = "/admin/?project=1&panel=late") -> str:
    request = RequestFactory().get(path)
    request.session = SessionStore(f"session-of-{reader.pk}")
    response = panel_response(request, panel("late", load), {})
    assert isinstance(response, PanelStream)
    return "".join(served_by_asgi(response))


def test_panel__asked_for_again_while_late__joins_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, other = User(pk=1), User(pk=2)
    release, begun = threading.Event(), []

    def waits() -> Any:
        begun.append(threading.current_thread())
        release.wait()
        return {"empty": {"text": f"load {len(begun)}"}}

    with monkeypatch.context() as short:
        short.setattr(kit, "PANEL_SECONDS", 0.05)
        late = [asked_for(reader, waits) for _ in range(3)]
        link = '<a href="/admin/?project=1" data-retry="late">'
        assert all("Still loading." in text and link in text for text in late)
        assert "Still loading." in asked_for(other, waits)
    wait_until(lambda: len(begun) == 2)
    release.set()

    assert "load 2" in asked_for(reader, waits)
    # What was shown is not shown again.
    assert "load 3" in asked_for(reader, waits)
    assert "load 4" in asked_for(reader, waits, "/admin/?project=2&panel=late")


def test_panel__something_was_changed_while_it_was_late__is_loaded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = User(pk=3)
    release = threading.Event()

    def waits() -> Any:
        release.wait()
        return {"empty": {"text": "before"}}

    with monkeypatch.context() as short:
        short.setattr(kit, "PANEL_SECONDS", 0.05)
        assert "Still loading." in asked_for(reader, waits)
    request = RequestFactory().post("/admin/")
    request.session = SessionStore(f"session-of-{reader.pk}")
    kit.forget_attempts(request)
    release.set()

    assert "after" in asked_for(reader, says("after"))


def test_attempts__nobody_wants_a_waiting_load_any_more__it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "WANTED_SECONDS", -1.0)
    loads = [Mock(), Mock()]

    with ThreadPoolExecutor(1) as threads:
        kept = attempts.Attempts(threads)
        futures = [kept.join(attempts.Attempt("s", f"/{n}", "UTC", "p"), load) for n, load in enumerate(loads)]

    assert all(future.exception() for future in futures)
    assert not any(load.called for load in loads)


def test_panels__many__are_loaded_side_by_side() -> None:
    together = threading.Barrier(4)

    def meets() -> Any:
        together.wait(timeout=30)
        return {"empty": {"text": "met"}}

    shown = "".join(served_by_asgi(page(*(panel(f"p{number}", meets) for number in range(4)))))

    assert shown.count("met") == 4


def test_page__without_a_place_for_a_panel__is_a_defect() -> None:
    with pytest.raises(ValueError, match="lost"):
        page_response(HttpRequest(), "<main></main>", [panel("lost", says("x"))], {})


def test_frame__project_and_range__in_the_address_and_kept(client: Client, reader: User, project: Project) -> None:
    other = make_project()
    Membership.objects.create(user=reader, project=other, role=Role.READER)
    client.force_login(reader)

    client.get(PAGE)
    shown = client.get(f"{PAGE}?project={other.pk}&range=7d").content.decode()
    assert f'value="{other.pk}" selected' in shown

    kept = client.get(PAGE).content.decode()
    assert f"?project={other.pk}&amp;range=7d" in kept


def test_frame__range_that_cannot_be_read__is_named(client: Client, reader: User) -> None:
    client.force_login(reader)

    shown = client.get(f"{PAGE}?range=9y").content.decode()

    assert "range: must be one of" in shown


def test_navigation__by_role__offers_what_may_be_opened(client: Client, project: Project) -> None:
    def offered(role: Role) -> str:
        client.force_login(make_staff(role, project))
        return client.get(PAGE).content.decode().partition('id="navigation"')[2].partition("</nav>")[0]

    assert "Playground" in offered(Role.EDITOR)
    assert "Playground" not in offered(Role.READER)


def test_within_limit__nothing_comes__the_other_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "FIRST_BYTE_SECONDS", 0.01)
    lookup: Future[bool] = Future()

    assert kit.within_limit(lookup, otherwise=True)
    lookup.set_result(False)
    assert not kit.within_limit(lookup, otherwise=True)
