"""A DNS resolver for tests."""

from __future__ import annotations


class Names:
    """A resolver that returns each name's addresses in turn, the last ones from then on; an empty list is an unknown
    name. In `Names(api_example_com=[["10.0.0.1"]])` an underscore stands for a dot."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): given for name, given in answers.items()}
        self.resolved: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        given = self._answers.get(host, [[]])
        found = given.pop(0) if len(given) > 1 else given[0]
        if not found:
            raise OSError("unknown name")
        return found
