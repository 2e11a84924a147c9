from __future__ import annotations

from typing import Any

from tests.live.playground import Account
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.waiting import wait_until

_REQUESTS = 3_000
# A name of which the tables' columns would be wider than a window if it were not wrapped.
_LONG_NAME = "-".join(["checkout-assistant-of-the-european-shops"] * 2)
_PROMPT = {"system_prompt": "You sell {{goods}}.", "model": "sandbox/mirror"}
_ROWS = """
from core.models import Project
from tests.factories.everything import one_of_everything
one_of_everything(Project.objects.get(pk="{project_id}"))
"""


class Everything(Team):
    def __init__(self, service: LiveService, name: str) -> None:
        super().__init__(service, name)
        traffic = ("--requests", str(_REQUESTS), "--days", "10", "--content-days", "10")
        self.command("generate_traffic", "--project", self.project_id, *traffic)
        second = {**_PROMPT, "system_prompt": "You sell <b>{{goods}}</b>."}
        stages = [{"weight": 10}, {"weight": 100}]
        self.prompt("shown", _PROMPT, second).rollout(stages=stages)
        self.prompt(_LONG_NAME, _PROMPT, second).rollout(stages=stages)
        self.prompt("planned", _PROMPT, second)
        self.experiment = self._experiment()
        rule = {"name": "names the parcel", "kind": "contains", "definition": {"value": "parcel"}}
        self.evaluator = self.call("POST", "../evaluators", rule)
        sampled = {"evaluator_id": self.evaluator["id"], "rate": 0.5}
        self.evaluation = self.call("POST", "../online-evaluations", sampled)
        self.queue = self.call("POST", "../reviews", {"name": "Helpful?", "score_name": "helpful", "kind": "boolean"})
        made = self.call("POST", "../datasets", {"name": "Taken"})
        self.call("POST", f"../datasets/{made['id']}/items/from-requests", {"limit": 5})
        self.command("shell", "--verbosity", "0", "-c", _ROWS.format(project_id=self.project_id))
        self.superuser = Account()
        account = ("--username", self.superuser.name, "--email", "operator@example.com")
        self.command(
            "createsuperuser", "--skip-checks", "--noinput", *account, DJANGO_SUPERUSER_PASSWORD=self.superuser.password
        )

    def _experiment(self) -> dict[str, Any]:
        candidates = [{"model": "sandbox/echo"}, {"model": "sandbox/mirror"}]
        made = self.call("POST", "../experiments", {"candidates": candidates, "item_limit": 2})
        path = f"../experiments/{made['id']}"
        wait_until(lambda: self.call("GET", path)["state"] == "completed", what="the answers of the experiment")
        return made
