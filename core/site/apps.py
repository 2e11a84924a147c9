from typing import Any

from django.contrib.admin import autodiscover
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class RightsAdminConfig(SimpleAdminConfig):
    """Django's admin app, with the site that checks the table of rights.

    Admin modules are imported with the site's URLs, so that a process without pages does not load them.
    """

    default_site = "core.site.site.RightsAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(**options: Any) -> list[checks.CheckMessage]:
    autodiscover()
    return check_admin_app(**options)
