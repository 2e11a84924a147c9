from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Generic
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from core.errors import ConflictError, NotFoundError
from core.resources.rows import Row, get_or_raise, lock_project, require_room


class Resource(Generic[Row]):
    """The services of a kind of row. A `key` is unique in a project, and API paths name a row by `lookup`.

    `missing`, `taken` and `full` are each an error's code and message. A message may contain the row's `{key}` and the
    project's `{maximum}` of rows.
    """

    model: type[Row]
    key: ClassVar[str] = "name"
    lookup: ClassVar[str] = "pk"
    maximum: ClassVar[int]
    missing: ClassVar[tuple[str, str]]
    taken: ClassVar[tuple[str, str]]
    full: ClassVar[tuple[str, str]]
    # The logger of changes, and the names of the entity and of its `lookup` there.
    logged: ClassVar[tuple[logging.Logger, str, str] | None] = None
    removed: ClassVar[str] = "deleted"

    def rows(self, project_id: UUID) -> QuerySet[Row]:
        return self.model._default_manager.filter(project_id=project_id)

    def get(self, project_id: UUID, key: Any) -> Row:
        return get_or_raise(self.rows(project_id), self.not_found(key), **{self.lookup: key})

    def not_found(self, key: Any) -> NotFoundError:
        code, message = self.missing
        return NotFoundError(message.format(key=key), code=code)

    def create(self, project_id: UUID, values: Mapping[str, Any], *, actor: str = "") -> Row:
        """Raises ConflictError for a taken key or beyond the maximum, and ValidationError."""
        code, message = self.full
        full = ConflictError(message.format(maximum=self.maximum), code=code)
        with transaction.atomic():
            require_room(project_id, self.rows(project_id), self.maximum, full)
            row = self._saved(project_id, self.new(project_id, actor), values)
        self._log("created", project_id, getattr(row, self.lookup), actor)
        return row

    def change(self, project_id: UUID, key: Any, values: Mapping[str, Any], *, actor: str = "") -> Row:
        """Keeps fields that are not in `values`. Raises NotFoundError, ConflictError for a taken key, and
        ValidationError."""
        with transaction.atomic():
            lock_project(project_id)
            row = self._saved(project_id, self.get(project_id, key), values)
        self._log("changed", project_id, key, actor)
        return row

    def remove(self, project_id: UUID, key: Any, *, actor: str = "") -> None:
        self.get(project_id, key).delete()
        self._log(self.removed, project_id, key, actor)

    def new(self, project_id: UUID, actor: str) -> Row:
        return self.model(project_id=project_id)

    def fill(self, row: Row, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(row, name, value)

    def finish(self, row: Row, values: Mapping[str, Any]) -> None:
        """Stores what depends on a saved row."""

    def _saved(self, project_id: UUID, row: Row, values: Mapping[str, Any]) -> Row:
        self.fill(row, values)
        key = getattr(row, self.key)
        if self.rows(project_id).exclude(pk=row.pk).filter(**{self.key: key}).exists():
            code, message = self.taken
            raise ConflictError(message.format(key=key), code=code)
        row.save()
        self.finish(row, values)
        return self.get(project_id, getattr(row, self.lookup))

    def _log(self, event: str, project_id: UUID, key: Any, actor: str) -> None:
        if self.logged is not None:
            logger, entity, name = self.logged
            logger.info("%s.%s project_id=%s %s=%s actor=%s", entity, event, project_id, name, key, actor)
