"""Where the limit is changed that refused a request."""

from __future__ import annotations

from console.settings_form.wording import LIMITS
from core.ui.pages import Visit


def limit_address(visit: Visit, code: str, *, team_id: int = 0) -> str:
    """Returns an empty text if `code` is not that of a limit, or the person may not open the page."""
    if code not in LIMITS:
        return ""
    if code.startswith("team_"):
        return visit.link_if_there("teams", team=team_id or "")
    page = "api_keys" if code.startswith("key_") else "end_users" if code.startswith("user_") else "limits"
    return visit.link_if_there(page)
