"""A page of the kit: its project, range and time zone, and panels that are streamed, late or broken."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import Client, RequestFactory

from core.errors import ServiceUnavailableError
from core.models import Membership, Project
from core.roles import Role
from core.ui import panels as kit
from core.ui.panels import Panel, PanelStream, marker, page_response
from tests.factories.core import make_project, make_staff

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
    assert "longer than" in parts[1]
    assert "here" in parts[3]


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
    assert 'value="7d" selected' in kept
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
