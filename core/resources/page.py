from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.http.response import HttpResponseBase

from core.resources.declaration import Resource
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.forms import SerializerForm, show_errors
from core.ui.pages import Visit


class ResourceForm(SerializerForm[Any]):
    once: ClassVar[tuple[str, ...]] = ()

    def __init__(self, record: Any = None, data: Any = None) -> None:
        super().__init__(record, data)
        self._kept: dict[str, Any] = {}
        if record is not None:
            self._kept = {name: getattr(record, name) for name in self.once}
            for name in self.once:
                del self.fields[name]

    def body(self) -> dict[str, Any]:
        return {**super().body(), **self._kept}

    def clean(self) -> dict[str, Any]:
        given = self.serializer(data=self.body())
        if given.is_valid():
            self.values = given.validated_data
        else:
            show_errors(self, {name: problem for name, problem in given.errors.items() if name not in self.errors})
        return self.cleaned_data


class ResourcePage(EditPage[Any, ResourceForm]):
    resource: ClassVar[Resource[Any]]
    right = Right.ADMINISTER
    saved: ClassVar[str] = "{row}: saved, and known to every worker within a second."
    removed: ClassVar[str]

    def find(self, visit: Visit, given: str) -> Any:
        try:
            return self.resource.get(visit.project.pk, given)
        except ValidationError as error:
            raise ValueError(given) from error

    def address(self, visit: Visit, record: Any) -> str:
        return visit.link(self.name, **{self.key: getattr(record, self.resource.lookup)})

    def save(self, visit: Visit, record: Any, form: ResourceForm) -> HttpResponseBase:
        project_id, values = visit.project.pk, form.values
        if record is None:
            row = self.resource.create(project_id, values, actor=visit.actor)
        else:
            row = self.resource.change(project_id, getattr(record, self.resource.lookup), values, actor=visit.actor)
        return visit.done(self.saved.format(row=row), self.address_after(visit, row))

    def address_after(self, visit: Visit, row: Any) -> str:
        return visit.link(self.name)

    def do_remove(self, visit: Visit, record: Any) -> HttpResponseBase:
        self.resource.remove(visit.project.pk, getattr(record, self.resource.lookup), actor=visit.actor)
        return visit.done(self.removed.format(row=record), visit.link(self.name))

    # The button's name is its word in lower case.
    do_delete = do_remove
