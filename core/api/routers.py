from __future__ import annotations

from typing import Any

from rest_framework.routers import DynamicRoute, Route, SimpleRouter

_LIST, _LIST_ACTIONS, _ROW, _ROW_ACTIONS = SimpleRouter.routes


class ProjectRouter(SimpleRouter):
    """Serves ViewSets at paths that end without a slash, and whose parameters have Django's path converters:

        router.register("prompts/configs/<uuid:config_id>/versions", VersionViewSet, "prompt-version")

    A ViewSet names its rows' parameter by `lookup_url_kwarg` and `lookup_value_converter`.
    """

    # The path of a row comes last: its id may hold slashes (`core.http.paths`) and would take in the row's actions.
    routes = [_LIST, _LIST_ACTIONS, _ROW_ACTIONS, _ROW]

    def __init__(self) -> None:
        super().__init__(trailing_slash=False, use_regex_path=False)

    def _get_dynamic_route(self, route: DynamicRoute, action: Any) -> Route:
        made: Route = super()._get_dynamic_route(route, action)
        # Each method of a path is described by its own `@operation`, and not by that of the path's first method.
        made.initkwargs.pop("schema", None)
        return made
