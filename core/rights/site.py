"""The admin as a whole: no page opens for somebody whom the table does not let in anywhere."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from typing_extensions import override

from core.rights.asking import may, right_of_page
from core.rights.roles import Right

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class Pages:
    """For templates: `pages.<name of the URL>` is whether the person may open that page in any project."""

    def __init__(self, person: AbstractBaseUser | AnonymousUser) -> None:
        self._person = person

    def __getitem__(self, url_name: str) -> bool:
        return may(self._person, right_of_page(url_name))


class RightsAdminSite(AdminSite):
    """The first gate: the right of the page, in any project. In which, and for which row, `core.rights.admin` asks."""

    @override
    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        def asked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            named = request.resolver_match.url_name if request.resolver_match else None
            # Those of Django's without a name redirect to one that has one, or find nothing.
            right = right_of_page(named) if named else Right.SIGNED_IN
            if not may(request.user, right):
                raise PermissionDenied
            response: HttpResponseBase = view(request, *args, **kwargs)
            return response

        return super().admin_view(update_wrapper(asked, view), cacheable)

    @override
    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "pages": Pages(request.user)}
