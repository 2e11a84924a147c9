from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.content.templating import MAX_VARIABLES, NAME_CHARACTERS, compile_template
from prompts.errors import InvalidVariableError, InvalidVersionError, MissingVariableError, UnknownVariableError
from tests.tables.cases import tabled


def declared(name: str, kind: str = "string", *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "type": kind, "required": required}


def render(text: str, values: dict[str, Any], *variables: dict[str, Any]) -> str:
    return compile_template(text, variables).render(values)


@pytest.mark.parametrize("written", ["{{name}}", "{{ name }}", "{{\tname\n}}", "{{name }}"])
def test_render__placeholder__takes_the_value(written: str) -> None:
    assert render(f"Hello {written}!", {"name": "Ada"}, declared("name")) == "Hello Ada!"


def test_render__placeholder_several_times__filled_in_everywhere() -> None:
    assert render("{{a}}{{b}}{{a}} {{{a}}}", {"a": "1", "b": "2"}, declared("a"), declared("b")) == "121 {1}"


PLAIN = [
    "{{ 7 * 7 }}",
    "{{ user.password }}",
    "{{ config['SECRET_KEY'] }}",
    "{{ name | upper }}",
    "{{ 1name }}",
    "{{ na-me }}",
    "{{ }}",
    "{{name}",
    "{name}",
    "{% if name %}x{% endif %}",
    "{# comment #}",
    "${name}",
    "#{name}",
    "<%= name %>",
    "%(name)s %s",
    "{0.__class__}",
    "{{ ''.__class__.__mro__ }}",
    "{{ \u017f }}",  # `lower()` turns this letter into an ASCII s.
    "<script>alert(1)</script>",
    "\\{{",
]


@pytest.mark.parametrize("text", PLAIN)
def test_render__template_text_that_looks_like_code__plain_text(text: str) -> None:
    assert render(text, {}) == text
    assert render(f"{text}{{{{name}}}}{text}", {"name": "Ada"}, declared("name")) == f"{text}Ada{text}"


@pytest.mark.parametrize("value", [*PLAIN, "{{name}}", "{{ other }}", "\\1 \\g<0>", "&lt;b&gt;", "}}{{"])
def test_render__value_that_looks_like_code__plain_text(value: str) -> None:
    rendered = render("<{{name}}|{{other}}>", {"name": value, "other": "x"}, declared("name"), declared("other"))
    assert rendered == f"<{value}|x>"


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
code = st.sampled_from([*PLAIN, "{{name}}", "{{", "}}", "{", "}"]).flatmap(
    lambda part: texts.map(lambda text: part + text)
)


@given(parts=st.lists(st.tuples(texts, names), max_size=6), values=st.dictionaries(names, texts | code, max_size=8))
def test_render__any_template_and_values__equal_to_joining_the_parts(
    parts: list[tuple[str, str]], values: dict[str, str]
) -> None:
    # Texts between placeholders contain no braces, so that the expected parts are known by construction.
    plain = [(text.replace("{", "(").replace("}", ")"), name) for text, name in parts]
    template = compile_template(
        "".join(f"{text}{{{{{name}}}}}" for text, name in plain), [declared(name) for name in values]
    )
    expected = "".join(text + values.get(name, f"{{{{{name}}}}}") for text, name in plain)
    assert template.render(values) == expected


@given(text=texts | code, value=texts | code)
def test_render__any_text__keeps_all_but_the_placeholders(text: str, value: str) -> None:
    template = compile_template(text, [])
    assert template.render({}) == text
    assert template.render(dict.fromkeys(template.names, value)).count(value) >= len(template.names)


@tabled
def test_render__value_of_its_type__shown_as_json(kind: str, value: Any, shown: str) -> None:
    assert render("<{{ v }}>", {"v": value}, declared("v", kind)) == f"<{shown}>"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 5),
        ("string", ["a"]),
        ("string", True),
        ("number", True),
        ("number", "five"),
        ("number", "true"),
        ("number", ""),
        ("number", "1e999"),
        ("number", "NaN"),
        ("number", float("nan")),
        ("number", float("inf")),
        ("boolean", 1),
        ("boolean", "yes"),
        ("array", {"a": 1}),
        ("array", "1,2"),
        ("array", "[" * 5000),
        ("array", [float("nan")]),
        ("object", []),
        ("object", '"text"'),
        ("object", {"a": {1, 2}}),
    ],
)
def test_render__value_of_another_type__error_names_the_variable_and_not_the_value(kind: str, value: Any) -> None:
    with pytest.raises(InvalidVariableError) as raised:
        render("{{ v }}", {"v": value}, declared("v", kind))
    error = raised.value
    assert (error.status, error.code, error.variable) == (422, "invalid_variable", "v")
    assert "'v'" in error.message
    assert str(value) not in error.message or not str(value)


def test_render__deep_value__error_and_no_crash() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidVariableError):
        render("{{ v }}", {"v": value}, declared("v", "array"))
    while value:
        value = value.pop()


def test_render__single_surrogate__refused() -> None:
    with pytest.raises(InvalidVariableError, match="'v' is not well-formed"):
        render("{{ v }}", {"v": "\ud800"})


@pytest.mark.parametrize("values", [{}, {"name": None}])
def test_render__required_left_out__error_names_it(values: dict[str, Any]) -> None:
    with pytest.raises(MissingVariableError, match="'name' is required") as raised:
        render("Hello", values, declared("name", required=True))
    assert (raised.value.status, raised.value.code) == (422, "missing_variable")


@pytest.mark.parametrize("values", [{}, {"name": None}])
def test_render__optional_left_out__empty(values: dict[str, Any]) -> None:
    assert render("Hello {{ name }}.", values, declared("name", "object")) == "Hello ."


def test_render__undeclared_placeholder__any_value_or_as_it_is_written() -> None:
    template = compile_template("{{ a }}, {{a}}", [])
    assert template.names == {"a"}
    assert template.render({}) == "{{ a }}, {{a}}"
    assert template.render({"a": None}) == "{{ a }}, {{a}}"
    assert template.render({"a": "{{ a }}"}) == "{{ a }}, {{ a }}"
    assert template.render({"a": {"b": [1]}}) == '{"b": [1]}, {"b": [1]}'


def test_render__unknown_variable__error_names_it_cut_short() -> None:
    with pytest.raises(UnknownVariableError) as raised:
        render("Hello", {"n" * 5000: "x"}, declared("name"))
    assert (raised.value.status, raised.value.code) == (422, "unknown_variable")
    assert "n" * NAME_CHARACTERS in raised.value.message
    assert len(raised.value.message) < 200


def test_render__tolerated__no_error_and_no_effect() -> None:
    assert compile_template("Hello", []).render({"other": "x"}, tolerated={"other"}) == "Hello"


@pytest.mark.parametrize(("text", "value"), [("{{v}}", "x" * 101), ("{{v}}" * 51, "xy"), ("{{v}}{{w}}", "é" * 50)])
def test_render__too_long__error_names_the_variable(text: str, value: str) -> None:
    with pytest.raises(InvalidVariableError, match="'v' makes the prompt too long: at most 100 bytes"):
        compile_template(text, [declared("v"), declared("w")]).render({"v": value, "w": "w"}, limit_bytes=100)


@pytest.mark.parametrize(("text", "value"), [("{{v}}", "x" * 100), ("{{v}}" * 50, "xy"), ("{{v}}", "é" * 50)])
def test_render__at_the_limit__passes(text: str, value: str) -> None:
    template = compile_template(text, [declared("v")])
    assert len(template.render({"v": value}, limit_bytes=100).encode()) == 100


def test_render__long_value_in_many_placeholders__refused_before_it_is_built() -> None:
    template = compile_template("{{v}}" * 200_000, [])
    with pytest.raises(InvalidVariableError):
        template.render({"v": "x" * 1_000_000})


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        (["name"], "variables.0"),
        ([{}], "variables.0.name"),
        ([{"name": ""}], "variables.0.name"),
        ([{"name": "1a"}], "variables.0.name"),
        ([{"name": "a b"}], "variables.0.name"),
        ([{"name": "a\n"}], "variables.0.name"),
        ([{"name": "é"}], "variables.0.name"),
        ([{"name": "a" * (NAME_CHARACTERS + 1)}], "variables.0.name"),
        ([{"name": 5}], "variables.0.name"),
        ([{"name": "a"}, {"name": "b", "type": "date"}], "variables.1.type"),
        ([{"name": "a", "type": []}], "variables.0.type"),
        ([{"name": "a", "required": "yes"}], "variables.0.required"),
        ([{"name": "a", "default": "x"}], "variables.0.default"),
        ([{"name": "a"}, {"name": "a", "type": "number"}], "variables.1.name"),
        ([{"name": f"v{n}"} for n in range(MAX_VARIABLES + 1)], "variables"),
    ],
)
def test_compile__bad_declaration__names_the_field(variables: list[Any], field: str) -> None:
    with pytest.raises(InvalidVersionError) as raised:
        compile_template("text", variables)
    assert raised.value.status == 400
    assert list(raised.value.details or {}) == [field]
    assert raised.value.message.startswith(field)


def test_compile__only_a_name__optional_string() -> None:
    (variable,) = compile_template("", [{"name": "a" * NAME_CHARACTERS}]).variables
    assert (variable.type, variable.required) == ("string", False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    )
)
def test_render__any_json_value__reads_back_equal(value: Any) -> None:
    rendered = render("{{ v }}", {"v": [value]}, declared("v", "array"))
    assert json.loads(rendered) == [value]
    assert render("{{ v }}", {"v": rendered}, declared("v", "array")) == rendered
