"""A change of prices, by a sync and by hand, as every worker prices by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import body
from tests.integrations.pricing.catalogs import catalog_b, model_a

MODEL = "gpt-synced-1"
# The answer states 1,000 tokens of input and 100 of output.
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


@pytest.fixture
def projects(pair: GatewayService, upstream: ScriptedServer) -> tuple[Gateway, Gateway]:
    upstream.play("priced", play.answer("hi", usage=USAGE))
    first, second = (pair.new_project(base_urls={"openai": upstream.base_url("priced")}) for _ in range(2))
    return first, second


def costs(gateway: Gateway, expected: str) -> list[str]:
    """Returns the cost of a request at each worker."""

    def ask(port: int) -> str:
        response = gateway.post(body(model=MODEL), port=port)
        assert response.status_code == 200, response.text
        return gateway.record(response).cost_usd

    return [
        gateway.service.until(lambda: ask(port), lambda cost: cost == expected)  # noqa: B023 - called here
        for port in gateway.service.ports
    ]


def sync(service: GatewayService, folder: Path, models: dict[str, tuple[float, float]]) -> None:
    first, second = folder / "a.json", folder / "b.json"
    first.write_text(json.dumps({name: model_a(*prices) for name, prices in models.items()}))
    second.write_text(json.dumps(catalog_b(groq={"llama-synced-1": (1, 1)})))
    assert service.manage("sync_pricing", "--catalog-a", str(first), "--catalog-b", str(second)).startswith("success")


def test_prices__synced_overridden_removed__every_worker_prices_by_them(
    pair: GatewayService, projects: tuple[Gateway, Gateway], tmp_path: Path
) -> None:
    mine, other = projects
    assert costs(mine, "") == ["", ""]

    sync(pair, tmp_path, {MODEL: (1, 10), "gpt-synced-2": (1, 1)})
    assert costs(mine, "0.0020000000") == ["0.0020000000"] * 2

    own = {"input_cost_per_1m": "3", "output_cost_per_1m": "30"}
    assert mine.manage("PUT", f"pricing/openai/{MODEL}", own).status_code == 200
    assert costs(mine, "0.0060000000") == ["0.0060000000"] * 2
    assert costs(other, "0.0020000000") == ["0.0020000000"] * 2

    sync(pair, tmp_path, {MODEL: (2, 20), "gpt-synced-2": (1, 1)})
    assert costs(other, "0.0040000000") == ["0.0040000000"] * 2
    assert costs(mine, "0.0060000000") == ["0.0060000000"] * 2

    assert mine.manage("DELETE", f"pricing/openai/{MODEL}").status_code == 204
    assert costs(mine, "0.0040000000") == ["0.0040000000"] * 2

    sync(pair, tmp_path, {"gpt-synced-2": (1, 1)})
    assert costs(mine, "") == ["", ""]
