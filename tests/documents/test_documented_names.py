from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from analytics.urls import urlpatterns
from gateway.guardrails.verdicts import Guardrail
from tests.documents.references import APPS, DOCUMENTS, ROOT, SOURCES

_TREE = re.compile("[├└]── ")


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for source in SOURCES:
        name = source.relative_to(ROOT)
        if name.parts[0] in APPS and source.suffix == ".py":
            yield str(name), ast.parse(source.read_text(encoding="utf-8"))


def _declared(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
            for line in node.body:
                match line:
                    case (
                        ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code)))
                        | ast.AnnAssign(target=ast.Name(id="code"), value=ast.Constant(value=str(code)))
                    ):
                        yield node.name, code


def _given(module: ast.Module) -> Iterator[str]:
    errors = {
        name.asname or name.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("errors")
        for name in node.names
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors:
            for keyword in node.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)


def _text(pages: str) -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in DOCUMENTS if page.match(pages))


def test_error_codes__those_that_the_sources_raise__have_a_row_in_their_page() -> None:
    rows = "\n".join(line for line in _text("docs/errors.md").splitlines() if re.match(r"\| \d{3}", line))
    codes = {
        code: place
        for place, module in _modules()
        for code in (*(code for _, code in _declared(module)), *_given(module))
    }
    missing = {code: place for code, place in codes.items() if f"`{code}`" not in rows}
    assert missing == {}, "these codes have no row in docs/errors.md"


def test_environment_variables__those_that_settings_read__have_a_row_in_their_page() -> None:
    read = re.compile(r'\benv\.\w+\(\s*"([A-Z][A-Z_]+)"')
    names = {
        name
        for source in SOURCES
        if source.suffix == ".py" and source.relative_to(ROOT).parts[0] in APPS
        for name in read.findall(source.read_text(encoding="utf-8"))
    }
    rows = "\n".join(line for line in _text("docs/operations.md").splitlines() if line.startswith("| `"))
    assert "WEB_WORKERS" in names
    assert {name for name in names if f"`{name}`" not in rows} == set(), "these have no row in docs/operations.md"


def test_error_classes__file_with_a_tree__has_each_in_it() -> None:
    missing = [
        f"{place}: {name}"
        for place, module in _modules()
        if _TREE.search(tree := ast.get_docstring(module) or "")
        for name, _ in _declared(module)
        if not re.search(rf"^(.*[├└]── )?{name}\b", tree, re.MULTILINE)
    ]
    assert missing == [], "these errors have no line in the tree at the top of their file"


def test_guardrails__every_name__is_in_the_pages_on_them() -> None:
    pages = _text("docs/guardrails*.md")
    missing = [name.value for name in Guardrail if f"`{name.value}`" not in pages]
    assert missing == [], "docs/guardrails.md and docs/guardrails-answers.md do not name these guardrails"


@pytest.mark.parametrize("route", [str(pattern.pattern) for pattern in urlpatterns])
def test_analytics__every_route__is_in_its_page(route: str) -> None:
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
    own = f"docs/{path.split('/')[0]}.md"
    page = own if _text(own) else "docs/analytics.md"
    assert path in _text(page), f"{page} does not name {path}"
