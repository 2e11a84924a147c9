from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString

_ID_CHARACTERS = 8
# The stylesheet gives each kind a sign of its own, since colours alone tell some readers nothing.
_KINDS = {
    **dict.fromkeys(("success", "ok", "healthy", "active", "completed", "closed", "enabled", "passing"), "good"),
    **dict.fromkeys(("cancelled", "degraded", "paused", "half_open", "warning", "inconclusive", "expired"), "warn"),
    **dict.fromkeys(("error", "refused", "failed", "failing", "down", "open", "rolled_back", "revoked"), "bad"),
}


def id_link(href: str, identifier: object) -> SafeString:
    whole = str(identifier)
    shown = whole if len(whole) <= _ID_CHARACTERS + 4 else f"{whole[:_ID_CHARACTERS]}…"
    if not href:
        return format_html('<code title="{}">{}</code>', whole, shown)
    return format_html('<a data-id="{}" href="{}" title="{}"><code>{}</code></a>', whole, href, whole, shown)


def mark(value: object, kind: str = "") -> SafeString:
    text = str(value)
    chosen = kind or _KINDS.get(text, "neutral")
    return format_html(
        '<span class="badge mark {}" title="{}"><span class="sr">{}</span></span>',
        chosen, text.replace("_", " "), text.replace("_", " "),
    )  # fmt: skip


def status(value: object, kind: str = "", label: str = "") -> SafeString:
    text = str(value)
    chosen = kind or _KINDS.get(text, "neutral")
    shown = label or text.replace("_", " ")
    return format_html('<span class="badge {}">{}</span>', chosen, shown)
