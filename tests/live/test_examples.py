"""The examples that feature pages open with, sent as written to a live service: the answers are those of the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.examples import Example, examples_of, pages
from tests.live.prompts import Project, new_projects
from tests.live.service import LiveService
from tests.waiting import wait_until

PAGES = pages()


@pytest.fixture(scope="module")
def projects(live_service: LiveService) -> dict[str, Project]:
    names = [page.stem for page in PAGES]
    return dict(zip(names, new_projects(live_service, names), strict=True))


def run_until_it_matches(example: Example, variables: dict[str, str]) -> None:
    """Repeats a command until it gives its page's answer: workers learn of a change within a second, and the request
    log has a request once it is shipped."""
    outputs: list[str] = []

    def is_answered() -> bool:
        outputs.append(example.run(variables))
        return example.matches(outputs[-1])

    try:
        wait_until(is_answered, what=example.command)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{example.command}\nfirst {outputs[0]}\nlast {outputs[-1]}") from None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page__examples__have_the_answers_of_the_page(projects: dict[str, Project], page: Path) -> None:
    project = projects[page.stem]
    variables = {"BASE": project.service.base_url, "KEY": project.api_key, "PROJECT": project.project_id}
    if page.stem == "rollouts-api":
        prompt = project.prompt("support", {"system_prompt": "Be brief."}, {"system_prompt": "Be kind."})
        variables |= {"CONFIG": prompt.config_id, "VERSION": prompt.version_ids[1]}
    if page.stem == "rollouts":
        prompt = project.prompt("support", {"system_prompt": "Be brief."}, {"system_prompt": "Be kind."})
        stages = [{"weight": 50, "min_duration_minutes": 60, "min_requests": 0}]
        prompt.rollout(allocation_type="user_sticky", stages=stages)
    for example in examples_of(page):
        run_until_it_matches(example, variables)
