from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from console.settings_form.form import field_name
from core.ui.pages import Visit
from gateway.models import GatewaySettings
from gateway.project_settings.declaration import Section, Setting, parts
from gateway.project_settings.settings import ProjectSettings
from gateway.reports.settings_warnings import settings_warnings

_NAMED = re.compile(r"{([a-z_.]+)}")


def shown_warnings(visit: Visit, row: GatewaySettings, sections: Sequence[Section]) -> Iterator[SafeString]:
    for warning in settings_warnings(row):
        path = re.sub(r"\.\d+\Z", "", warning.field)
        if _settings()[path].section not in sections:
            continue
        words = [
            setting_link(visit, part, sections) if place % 2 else format_html("{}", part)
            for place, part in enumerate(_NAMED.split(warning.template))
        ]
        told = mark_safe("".join(words))  # noqa: S308 - each part is escaped
        yield format_html("{}: {}", setting_link(visit, path, sections), told)


def setting_link(visit: Visit, path: str, sections: Sequence[Section] = ()) -> SafeString:
    """Links to the setting's field, on this page if it shows the section. People who may not open the settings get the
    label only."""
    one = _settings()[path]
    page = "" if one.section in sections else visit.link_if_there("settings")
    if not page and one.section not in sections:
        return format_html("<em>{}</em>", one.label)
    return format_html('<a href="{}#id_{}">{}</a>', page, field_name(path), one.label)


@cache
def _settings() -> dict[str, Setting]:
    return {one.path: one for one in parts(ProjectSettings)}
