from django.contrib.admin.apps import AdminConfig


class RightsAdminConfig(AdminConfig):
    """Django's admin, whose pages ask the table."""

    default_site = "core.rights.site.RightsAdminSite"
