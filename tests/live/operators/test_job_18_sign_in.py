"""Job 18: sign in by the OpenID provider, and out again. Two clicks here, beside those at the provider."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from django_otp.oath import TOTP
from playwright.async_api import Page, expect

from tests.clients.conftest import made
from tests.live.operators.looks import faults_of
from tests.live.operators.operator import Operator
from tests.live.playground import Account
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.migrated import place_database, place_tables
from tests.sign_in.program import CLIENT, free_issuer, openid_provider

_MAX_CLICKS = 2
_ACCOUNTS = {
    "ada": {"preferred_username": "ada", "email": "ada@example.com", "email_verified": True, "groups": ["shop"]},
    "ben": {"preferred_username": "ben", "groups": ["staff"]},
}
_SUPERUSER = """
from django.contrib.auth.models import User
User.objects.create_superuser("{name}", password="{password}")
"""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    made("openid")
    issuer, var_dir = free_issuer(), tmp_path_factory.mktemp("sign-in") / "var"
    place_database(var_dir)
    place_tables(var_dir / "clickhouse")
    environment = {
        "WEB_WORKERS": "1",
        "OIDC_PROVIDERS": "company,partner",
        "OIDC_COMPANY_ISSUER": issuer,
        "OIDC_COMPANY_CLIENT_ID": CLIENT["id"],
        "OIDC_COMPANY_CLIENT_SECRET": CLIENT["secret"],
        "OIDC_COMPANY_SCOPES": "profile,email,groups",
        "OIDC_COMPANY_GROUPS": json.dumps({"shop": {"Shop": "editor"}}),
        # Nobody serves there: the provider is away.
        "OIDC_PARTNER_ISSUER": "http://127.0.0.1:9",
        "OIDC_PARTNER_CLIENT_ID": "gateway",
        "SECOND_FACTOR": "superusers",
    }
    service = LiveService(var_dir, environment)
    try:
        with openid_provider(issuer, service.base_url, "company", _ACCOUNTS):
            yield Team(service, "Shop")
        assert CLIENT["secret"] not in service.log
    finally:
        service.stop()


async def _at_the_provider(page: Page, account: str) -> None:
    await page.get_by_label("Account").fill(account)
    await page.get_by_role("button", name="Continue").click()


async def _log_out(page: Page, name: str) -> None:
    await page.get_by_role("banner").get_by_text(name, exact=True).click()
    await page.get_by_role("button", name="Log out").click()


async def test_job_18__sign_in_by_openid__role_of_the_group_and_out_again(page: Page, team: Team) -> None:
    operator = Operator(page, team)
    await page.goto(f"{team.service.base_url}/admin/prompts/")
    assert await faults_of(page) == []

    await operator.click(page.get_by_role("link", name="Sign in with Company"))
    await _at_the_provider(page, "ada")

    await expect(page.get_by_role("heading", name="Prompts", level=1)).to_be_visible()
    await expect(page.get_by_role("banner").get_by_text("ada", exact=True)).to_be_visible()
    await expect(page.get_by_role("combobox", name="Project")).to_contain_text("Shop")
    # An editor makes prompts, and does not see members.
    await expect(page.get_by_role("link", name="New prompt")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Members")).to_have_count(0)
    assert operator.clicks <= _MAX_CLICKS

    await _log_out(page, "ada")
    await page.get_by_role("button", name="Log out here").click()

    # The provider has forgotten ada too. Another person's group gives no role, which a sentence says.
    await page.get_by_role("link", name="Sign in with Company").click()
    await _at_the_provider(page, "ben")
    await expect(page.get_by_text("None of your groups at Company gives a role here: “staff”.")).to_be_visible()
    assert await faults_of(page) == []


async def test_local_login__beside_a_provider_that_is_away__with_a_second_factor(page: Page, team: Team) -> None:
    account = Account()
    team.command("shell", "--verbosity", "0", "-c", _SUPERUSER.format(name=account.name, password=account.password))
    await page.goto(f"{team.service.base_url}/admin/prompts/")
    await page.get_by_role("link", name="Sign in with Partner").click()
    await expect(page.get_by_text("Partner does not answer as it should.")).to_be_visible()
    assert await faults_of(page) == []

    await page.get_by_label("Username:").fill(account.name)
    await page.get_by_label("Password:").fill(account.password)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_text("This service asks for a second factor.")).to_be_visible()
    assert await faults_of(page) == []
    key = base64.b32decode(await page.locator(".second-factor-key").inner_text())
    await page.get_by_label("Code").fill(f"{TOTP(key).token():06d}")
    await page.get_by_role("button", name="Set up").click()
    recovery = await page.locator("main li code").first.inner_text()
    assert await faults_of(page) == []
    await page.get_by_role("link", name="I have kept them").click()
    await expect(page.get_by_role("heading", name="Prompts", level=1)).to_be_visible()

    await page.goto(f"{team.service.base_url}/admin/second-factor/")
    await expect(page.get_by_text("10 recovery codes left")).to_be_visible()
    assert await faults_of(page) == []
    await _log_out(page, account.name)
    await page.get_by_role("link", name="Log in again").click()
    await page.get_by_label("Username:").fill(account.name)
    await page.get_by_label("Password:").fill(account.password)
    await page.get_by_role("button", name="Log in").click()
    assert await faults_of(page) == []
    await page.get_by_label("Code").fill(recovery)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("banner").get_by_text(account.name, exact=True)).to_be_visible()
