"""How YAML is read."""

from __future__ import annotations

from gateway.configuration.document import read_yaml


def test_read_yaml__names_and_values__as_they_were_meant() -> None:
    text = b"on: yes\n1: 010\ntime: 12:30\nday: 2027-01-01\nsize: 1e3\nnumber: 1.5\ntext: '5'\nnone: ~\n"
    assert read_yaml("f", text).values == {
        "on": True,
        "1": 8,
        "time": "12:30",
        "day": "2027-01-01",
        "size": "1e3",
        "number": 1.5,
        "text": "5",
        "none": None,
    }


def test_read_yaml__anchors_and_merges__own_values_win() -> None:
    text = b"base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\nhere: {<<: [*base, *other], a: 5}\n"
    source = read_yaml("f", text)
    assert source.values["here"] == {"a": 5, "b": 2, "c": 4}
    assert source.place(("here", "c")) == "f:2: "


def test_read_yaml__place__is_the_last_line_that_is_there() -> None:
    source = read_yaml("f", b"a:\n  b:\n    - 1\n    - c: 2\n")
    assert source.place(("a", "b", 1, "c")) == "f:4: "
    assert source.place(("a", "b", 7)) == "f:2: "
    assert source.place(()) == "f:1: "
