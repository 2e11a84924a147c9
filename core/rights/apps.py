from django.contrib.admin.apps import AdminConfig


class RightsAdminConfig(AdminConfig):
    """Django's admin app, with the site that checks the table of rights."""

    default_site = "core.rights.site.RightsAdminSite"
