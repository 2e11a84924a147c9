"""The base of every table in the admin; `core.rights.table` says which rights its pages need.

Rows of a project in which a person has no right are invisible: not listed and not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import PermissionDenied
from django.db.models import DateTimeField, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from core.rights.asking import may, project_ids_with, projects_with, rights_of_rows, sees_every_project
from core.rights.table import Rows
from core.roles import Right
from core.site.display import cell_of

if TYPE_CHECKING:
    # ModelAdmin is generic only in the type stubs.
    AnyModelAdmin = admin.ModelAdmin[Any]
    AnyInline = admin.TabularInline[Any, Any]
else:
    AnyModelAdmin = admin.ModelAdmin
    AnyInline = admin.TabularInline


class ProjectFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        ordering = self.field_admin_ordering(field, request, model_admin)
        seen = {"pk__in": projects_with(request.user, model_admin.rights.view).order_by().values("pk")}
        return field.get_choices(include_blank=False, ordering=ordering, limit_choices_to=seen)


class RightsAdmin(AnyModelAdmin):
    """`project_lookup` leads from a row to its project; empty if the rows belong to none.

    With `has_shared_rows` everybody sees the rows without a project.
    """

    project_lookup: ClassVar[str] = "project"
    has_shared_rows: ClassVar[bool] = False
    # The URL name of the page that makes the changes which have to pass a service; lists and rows link to it.
    page_of_changes: ClassVar[str] = ""
    _cells: list[Any] | None = None

    # One field with a label of its own instead of two without, and no script.
    formfield_overrides: ClassVar[Any] = {
        DateTimeField: {
            "form_class": forms.DateTimeField,
            "widget": forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"}),
        }
    }

    @property
    def media(self) -> forms.Media:
        return forms.Media()

    @property
    def rights(self) -> Rows:
        return rights_of_rows(f"{self.opts.app_label}_{self.opts.model_name}")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return self.narrowed(super().get_queryset(request), request, self.rights.view)

    def narrowed(self, rows: QuerySet[Any], request: HttpRequest, right: Right) -> QuerySet[Any]:
        person = request.user
        if sees_every_project(person):
            return rows
        if not self.project_lookup:
            return rows if may(person, right) else rows.none()
        mine = Q(**{f"{self.project_lookup}__in": project_ids_with(person, right)})
        if self.has_shared_rows and right is self.rights.view:
            mine |= Q(**{f"{self.project_lookup}__isnull": True})
        return rows.filter(mine)

    def project_of(self, row: Model) -> UUID | None:
        found: Any = row
        *way, last = self.project_lookup.split("__")
        for step in way:
            found = getattr(found, step)
        project_id: UUID | None = found.pk if last == "pk" else getattr(found, f"{last}_id")
        return project_id

    def permits(self, request: HttpRequest, right: Right, row: Model | None = None) -> bool:
        if row is None or not self.project_lookup or right is Right.NOBODY:
            return may(request.user, right)
        project_id = self.project_of(row)
        if project_id is not None:
            return may(request.user, right, project_id)
        return may(request.user, right if right is self.rights.view else Right.OPERATE)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.permits(request, self.rights.view)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.permits(request, self.rights.view, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.permits(request, self.rights.add)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.permits(request, self.rights.change, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.permits(request, self.rights.delete, obj)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Raises Http404, where Django would redirect to the index with a message."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404(f"There is no such {self.opts.verbose_name}.")
        return found

    def get_list_display(self, request: HttpRequest) -> Any:
        if self._cells is None:
            names = super().get_list_display(request)
            # Django compares columns with each other, so they are made once.
            self._cells = [cell_of(self, name) if isinstance(name, str) else name for name in names]
        return self._cells

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        return ()

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found: Any = super().get_changelist_instance(request)
        # An empty list leads on who may add the first row.
        found.may_add = self.has_add_permission(request)
        return found

    def get_list_filter(self, request: HttpRequest) -> Any:
        given = super().get_list_filter(request)
        return [(item, ProjectFilter) if item == self.project_lookup else item for item in given]

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        found = super().formfield_for_dbfield(db_field, request, **kwargs)
        if found is not None and isinstance(found.widget, RelatedFieldWidgetWrapper):
            found.widget = found.widget.widget
        return found

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        for name in filter(None, request.POST.getlist("action")):
            known = self.get_actions(request).get(name)
            if known is None:
                raise PermissionDenied
            for permission in getattr(known[0], "allowed_permissions", ()):
                queryset = self.narrowed(queryset, request, self._right_of_action(permission))
        return super().response_action(request, queryset, *args, **kwargs)

    def _right_of_action(self, permission: str) -> Right:
        rights = self.rights
        known = {"view": rights.view, "add": rights.add, "change": rights.change, "delete": rights.delete}
        return known.get(permission, Right.OPERATE)


class RightsInline(AnyInline):
    extra = 0
    can_delete = False

    @property
    def media(self) -> forms.Media:
        return forms.Media()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
