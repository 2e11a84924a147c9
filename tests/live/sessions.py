"""Sessions of accounts of a live service, for tests that look at something else than the login form.

Hashing a password, showing the form and showing Home take half of a page's short test. Each test gets its own session,
since sessions keep the last project and range.
"""

from __future__ import annotations

import json
from collections import defaultdict

from playwright.async_api import Page

from tests.live.prompts import Team

_COUNT = 20
_MAKE = """
import json
from django.contrib.auth.models import User
from django.test import Client
user, found = User.objects.get_by_natural_key("{name}"), []
for _ in range({count}):
    client = Client()
    client.force_login(user)
    found.append(client.session.session_key)
print(json.dumps(found))
"""
# Sessions that no test has used yet, by the address of the service and the account.
_unused: dict[tuple[str, str], list[str]] = defaultdict(list)


async def use_session(page: Page, team: Team, name: str) -> None:
    base_url = team.service.base_url
    left = _unused[base_url, name]
    if not left:
        left += json.loads(team.command("shell", "--verbosity", "0", "-c", _MAKE.format(name=name, count=_COUNT)))
    await page.context.add_cookies([{"name": "sessionid", "value": left.pop(), "url": base_url}])
