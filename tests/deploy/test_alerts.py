"""Each shipped Prometheus rule fires at the figures that it is for, and rests at others: promtool's own unit tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from tests.deploy.alerts import RULES, unit_test
from tests.fleet.servers import binary

_RULES = Path(__file__).resolve().parents[2] / "deploy" / "monitoring" / "prometheus-rules.yaml"


def test_rules__all__fire_and_rest(tmp_path: Path) -> None:
    shipped = [rule["alert"] for group in yaml.safe_load(_RULES.read_text())["groups"] for rule in group["rules"]]
    assert shipped == list(RULES)
    tests = [
        unit_test(name, series, rule.minute, fires=fires)
        for name, rule in RULES.items()
        for fires, series in ((True, rule.fires), (False, rule.rests))
    ]
    file = tmp_path / "rules.test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(_RULES)], "evaluation_interval": "1m", "tests": tests}))

    done = subprocess.run([binary("promtool"), "test", "rules", str(file)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
