"""The client's tools as functions, which every vendor has (https://platform.openai.com/docs/guides/tools).

The Responses API also has client-run tools that chat completions lack, or have only in places: custom tools, whose
input is one text, namespaces of tools, and a search for tools. Each becomes a function, and `origin_of` finds the
client's own name of a called function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from core.errors import ValidationError
from gateway.surfaces.checks import Json
from gateway.surfaces.tool_names import fitted

CUSTOM_INPUT = "input"
"""The parameter of a custom tool's function."""
SEARCH = "tool_search"

_FUNCTION_FIELDS = ("name", "description", "parameters", "strict")
_NAMED = frozenset({"function", "custom", "namespace"})
# Items of these types bring further tools.
_WITH_TOOLS = frozenset({"additional_tools", "tool_search_output"})
_WORDS = ("none", "auto", "required")
_JOINT = "__"
_ANY_OBJECT: Json = {"type": "object", "properties": {}}


class Origin(NamedTuple):
    """A tool as the client names it. `kind` is `function`, `custom` or `tool_search`."""

    kind: str
    name: str
    namespace: str = ""


class Toolbox:
    """`functions` are the chat completion's, by name; `search` are the settings of a web search, None without one.
    `untranslatable` names the tools that only a provider has, `warnings` what is left out."""

    __slots__ = ("_names", "_origins", "functions", "search", "untranslatable", "warnings")

    def __init__(self) -> None:
        self.functions: dict[str, Json] = {}
        self.search: Json | None = None
        self.untranslatable: list[str] = []
        self.warnings: list[str] = []
        self._names: dict[Origin, str] = {}
        self._origins: dict[str, Origin] = {}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Toolbox:
        """Includes the tools that the request's items bring. Raises ValidationError, which names the tool."""
        made = cls()
        if fields.get("tools"):
            made._add_all(fields["tools"], "tools")
        items = fields.get("input")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and isinstance(kind := item.get("type"), str) and kind in _WITH_TOOLS:
                made._add_all(item.get("tools") or [], f"input[{index}].tools")
        return made

    def name_of(self, origin: Origin) -> str:
        """The namespace and the name; ends in digits of a hash if that is too long or another tool's."""
        if (known := self._names.get(origin)) is not None:
            return known
        name = fitted(_flat(origin), self._origins, seed=repr(origin))
        self._names[origin], self._origins[name] = name, origin
        return name

    def origin_of(self, name: str) -> Origin:
        """A function of this name if the client has no such tool."""
        return self._origins.get(name) or Origin("function", name)

    def names_of(self, tools: Any) -> list[str]:
        """`tools` must have been added before."""
        found = []
        for tool in tools if isinstance(tools, list) else ():
            inner = tool.get("tools") or () if tool.get("type") == "namespace" else (tool,)
            space = tool["name"] if tool.get("type") == "namespace" else ""
            found += [self.name_of(Origin(one["type"], one["name"], space)) for one in inner if "name" in one]
        return found

    def _add_all(self, tools: Any, place: str) -> None:
        for kind, tool, where in _typed(tools, place):
            if kind == "namespace":
                for inner, one, there in _typed(tool.get("tools") or [], f"{where}.tools"):
                    self._add(inner, {"description": tool.get("description"), **one}, there, tool["name"])
            else:
                self._add(kind, tool, where, "")

    def _add(self, kind: str, tool: Mapping[str, Any], place: str, namespace: str) -> None:
        if kind == "function":
            self._define(Origin(kind, tool["name"], namespace), tool)
        elif kind == "custom":
            self._define(Origin(kind, tool["name"], namespace), _of_custom(tool))
        elif kind == SEARCH:
            # One that the provider runs finds tools of the request, all of which are offered.
            if tool.get("execution") == "client":
                self._define(Origin(kind, SEARCH), {"parameters": _ANY_OBJECT, **tool})
        elif kind.startswith("web_search"):
            self._search_the_web(tool)
        else:
            problem = f"only providers that have the Responses API have the tool {kind!r}"
            self.untranslatable.append(f"{place}: {problem}")

    def _define(self, origin: Origin, tool: Mapping[str, Any]) -> None:
        name = self.name_of(origin)
        fields = {field: tool[field] for field in _FUNCTION_FIELDS if tool.get(field) is not None}
        self.functions[name] = {"type": "function", "function": {**fields, "name": name}}

    def _search_the_web(self, tool: Mapping[str, Any]) -> None:
        if tool.get("external_web_access") is False:
            self.warnings.append("web_search: dropped, only OpenAI's searches a cache")
            return
        self.search = {name: tool[name] for name in ("search_context_size", "filters") if tool.get(name)}
        if isinstance(location := tool.get("user_location"), Mapping):
            place = {name: value for name, value in location.items() if name != "type" and value is not None}
            self.search["user_location"] = {"type": "approximate", "approximate": place}


def chat_tool_choice(choice: Any, toolbox: Toolbox, untranslatable: list[str]) -> str | Json | None:
    if isinstance(choice, str):
        if choice not in _WORDS:
            raise ValidationError("tool_choice: expected none, auto, required or an object")
        return choice
    if not isinstance(choice, Mapping):
        raise ValidationError("tool_choice: expected a string or an object")
    kind = choice.get("type")
    if kind in ("function", "custom", SEARCH):
        return _function(_chosen(choice, toolbox, "tool_choice"))
    if kind == "allowed_tools":
        tools = [tool for tool in choice.get("tools") or () if isinstance(tool, Mapping)]
        known = [tool for tool in tools if tool.get("type") in ("function", "custom", SEARCH)]
        allowed = [_function(_chosen(tool, toolbox, "tool_choice.tools")) for tool in known]
        return {"type": kind, kind: {"mode": choice.get("mode", "auto"), "tools": allowed}}
    untranslatable.append(f"tool_choice: only providers that have the Responses API have the tool {kind!r}")
    return None


def _chosen(tool: Mapping[str, Any], toolbox: Toolbox, place: str) -> str:
    kind = tool["type"]
    name = SEARCH if kind == SEARCH else tool.get("name")
    if not isinstance(name, str):
        raise ValidationError(f"{place}.name: this field is required", code="missing_field")
    return toolbox.name_of(Origin(kind, name, namespace_of(tool)))


def namespace_of(holder: Mapping[str, Any]) -> str:
    namespace = holder.get("namespace")
    return namespace if isinstance(namespace, str) else ""


def _function(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def _typed(tools: Any, place: str) -> Iterator[tuple[str, Json, str]]:
    if not isinstance(tools, list):
        raise ValidationError(f"{place}: expected a list")
    for index, tool in enumerate(tools):
        where = f"{place}[{index}]"
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            raise ValidationError(f"{where}.type: this field is required", code="missing_field")
        if tool["type"] in _NAMED and not isinstance(tool.get("name"), str):
            raise ValidationError(f"{where}.name: this field is required", code="missing_field")
        yield tool["type"], tool, where


def _flat(origin: Origin) -> str:
    joint = "" if origin.namespace.endswith(_JOINT) or not origin.namespace else _JOINT
    return f"{origin.namespace}{joint}{origin.name}"


def _of_custom(tool: Mapping[str, Any]) -> Json:
    form, description = tool.get("format"), tool.get("description")
    texts = [description] if isinstance(description, str) else []
    if isinstance(form, Mapping) and form.get("type") == "grammar":
        texts.append(f"The input has to match this grammar ({form.get('syntax')}):\n{form.get('definition')}")
    text = {"type": "string", "description": "The whole input of the tool"}
    schema = {"type": "object", "properties": {CUSTOM_INPUT: text}, "required": [CUSTOM_INPUT]}
    return {"description": "\n\n".join(texts), "parameters": {**schema, "additionalProperties": False}}
