"""Reads YAML with the line of every value, and refuses what YAML would accept silently."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, BinaryIO

import yaml

from gateway.configuration.problems import InvalidConfigurationError, Path, Problem

MAX_BYTES = 32_000_000
_MAX_DEPTH = 100
# Aliases repeat what they stand for: a small file could stand for a very large one.
_MAX_VALUES = 2_000_000
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_COLLECTIONS = (f"{_TAG}map", f"{_TAG}seq")
# The parser in C is ten times as fast. A PyYAML that was built without it reads the same files.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Source:
    """`values` is None for an empty file. `doubled` are names that occur twice in one object; the first counts."""

    name: str
    values: Any
    root: yaml.Node | None = field(default=None, repr=False)
    doubled: Sequence[Problem] = ()

    @contextmanager
    def all_told(self, *, is_last: bool = True) -> Iterator[None]:
        try:
            yield
        except InvalidConfigurationError as error:
            raise InvalidConfigurationError([*error.problems, *self.doubled]) from None
        if self.doubled and is_last:
            raise InvalidConfigurationError(self.doubled)

    def place(self, path: Path) -> str:
        node = self.root
        if node is None:
            return f"{self.name}: "
        line = node.start_mark.line
        for step in path:
            found = _step(node, step)
            if found is None:
                break
            line, node = found
        return f"{self.name}:{line + 1}: "


def read_file(name: str) -> bytes:
    try:
        with File(name).open("rb") as file:
            return read_stream(name, file)
    except OSError as error:
        raise _invalid(f"{name}: ", f"Cannot be read: {error.strerror}.") from None


def read_stream(name: str, stream: BinaryIO) -> bytes:
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _invalid(f"{name}: ", f"Has more than {MAX_BYTES // 1_000_000} MB.")
    return content


def read_yaml(name: str, content: bytes) -> Source:
    source = read_with_doubled(name, content)
    with source.all_told():
        return source


def read_with_doubled(name: str, content: bytes) -> Source:
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid(f"{name}:{line}: ", "Is not UTF-8.") from None
    loader = _Loader(text)
    try:
        _check_depth(name, text)
        root = loader.get_single_node()
        reader = _Reader(name, loader)
        values = None if root is None else reader.value(root, (), 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}: " if mark else f"{name}: "
        raise _invalid(place, f"Is no YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise _invalid(f"{name}: ", f"Is no YAML: {' '.join(str(error).split())}.") from None
    except RecursionError:
        raise _invalid(f"{name}: ", f"Is nested more than {_MAX_DEPTH} levels deep.") from None
    finally:
        loader.dispose()
    return Source(name, values, root, reader.doubled)


def _check_depth(name: str, text: str) -> None:
    """The parser in C recurses for each level, so deep nesting would end the process. Its events come one by one."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > 2 * _MAX_DEPTH:
                mark = event.start_mark
                place = f"{name}:{mark.line + 1}: " if mark else f"{name}: "
                raise _invalid(place, f"Is nested more than {_MAX_DEPTH} levels deep.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@dataclass(slots=True)
class _Reader:
    name: str
    loader: yaml.SafeLoader
    made: dict[int, tuple[Any, int]] = field(default_factory=dict)
    doubled: list[Problem] = field(default_factory=list)

    def value(self, node: yaml.Node, path: Path, depth: int) -> Any:
        return self._made(node, path, depth)[0]

    def _made(self, node: yaml.Node, path: Path, depth: int) -> tuple[Any, int]:
        known = self.made.get(id(node))
        if known is not None:
            return known
        if depth > _MAX_DEPTH:
            raise self._problem(node, path, f"Nested more than {_MAX_DEPTH} levels deep.")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _COLLECTIONS:
            raise self._problem(node, path, f"A value of the type {node.tag} has no place here.")
        if isinstance(node, yaml.MappingNode):
            found: tuple[Any, int] = self._mapping(node, path, depth)
        elif isinstance(node, yaml.SequenceNode):
            items = [self._made(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
            found = [item for item, _ in items], 1 + sum(size for _, size in items)
        elif isinstance(node, yaml.ScalarNode):
            found = self._scalar(node, path), 1
        if found[1] > _MAX_VALUES:
            raise self._problem(node, path, f"Aliases stand for more than {_MAX_VALUES:,} values here.")
        self.made[id(node)] = found
        return found

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> tuple[dict[str, Any], int]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        size = 1
        for key, value in node.value:
            if key.tag == _MERGE:
                size += self._merge(merged, value, path, depth)
                continue
            name = self._name(key, path)
            found, parts = self._made(value, (*path, name), depth + 1)
            size += parts
            if name in own:
                self.doubled += self._problem(key, (*path, name), "Is there twice.").problems
            else:
                own[name] = found
        return {**merged, **own}, size

    def _merge(self, merged: dict[str, Any], node: yaml.Node, path: Path, depth: int) -> int:
        size = 0
        for one in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(one, yaml.MappingNode):
                raise self._problem(one, path, "<< stands for an object, or a list of them.")
            values, parts = self._made(one, path, depth + 1)
            merged.update({name: value for name, value in values.items() if name not in merged})
            size += parts
        return size

    def _name(self, key: yaml.Node, path: Path) -> str:
        """Names stay as they were written: `on`, `1` and `2027-01-01` are names too."""
        if not isinstance(key, yaml.ScalarNode):
            raise self._problem(key, path, "The name of a field is a text.")
        return str(key.value)

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text, kind = str(node.value), node.tag.removeprefix(_TAG)
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return self.loader.construct_yaml_bool(node)
            # What YAML 1.1 reads as a number of base 60 or as a time was meant as a text.
            if kind == "int" and ":" not in text:
                return self.loader.construct_yaml_int(node)
            if kind == "float" and ":" not in text:
                return self.loader.construct_yaml_float(node)
        except (ValueError, OverflowError):
            raise self._problem(node, path, f"{text[:40]!r} is no number.") from None
        if kind in ("str", "int", "float", "timestamp", "value"):
            return text
        raise self._problem(node, path, f"A value of the type {node.tag} has no place here.")

    def _problem(self, node: yaml.Node, path: Path, text: str) -> InvalidConfigurationError:
        return InvalidConfigurationError([Problem(path, text, f"{self.name}:{node.start_mark.line + 1}: ")])


def _step(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in _members(node):
            if key.value == str(step):
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and str(step).isdecimal() and int(step) < len(node.value):
        member = node.value[int(step)]
        return member.start_mark.line, member
    return None


def _members(node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    yield from ((key, value) for key, value in node.value if key.tag != _MERGE)
    for key, value in node.value:
        if key.tag == _MERGE:
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                yield from _members(one)


def _invalid(place: str, text: str) -> InvalidConfigurationError:
    return InvalidConfigurationError([Problem((), text, place)])
