from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.scaling import figures, tables
from benchmarks.scaling.__main__ import PAGE, write
from benchmarks.scaling.inputs import Mix, Shape
from benchmarks.scaling.model import HEALTH_MESSAGES, HEALTH_MESSAGES_SENT, Elastic, Fixed, Layout, Model
from integrations.health import sync
from tests.deploy.kubernetes import FOLDER, build, containers, one
from tests.night import examples
from tests.tables.cases import tabled

MEASURED, PRICES = figures.measured(), figures.prices()
SHARE = st.floats(0, 1)
# A stream of fewer chunks is shorter than an answer that is none.
MIXES = st.builds(
    Mix, streams=SHARE, prompts=SHARE, limits=SHARE, texts=SHARE, sessions=SHARE, mean=st.floats(0.05, 1),
    chunks=st.floats(14, 2000), seconds=st.floats(0.1, 120), request_bytes=st.floats(100, 200_000),
    retention_days=st.floats(1, 400),
)  # fmt: skip
RATES = st.floats(0.1, 2e6)


def model(**fields: float) -> Model:
    return Model(MEASURED, Mix(**fields))


def whole(layout: Layout) -> dict[str, int]:
    number = layout.installations
    return {name: getattr(layout, name) * number for name in ("hosts", "primaries", "shards")} | {"all": number}


@given(MIXES, RATES)
def test_plan__any_mix__is_no_fuller_than_it_may_be(mix: Mix, rate: float) -> None:
    planned = Model(MEASURED, mix)
    layout = planned.plan(rate)

    used = planned.elastic(layout, rate)

    shape = planned.shape
    assert max(used[Elastic.WEB], used[Elastic.ANSWERS] * shape.web_share) <= shape.web_share + 1e-9
    assert max(used[Elastic.REDIS], used[Elastic.CLICKHOUSE]) <= shape.store_share + 1e-9
    assert max(used[Elastic.DISK], used[Elastic.BUDGETS]) <= 1 + 1e-9
    assert all(share <= 1 for name, share in planned.fixed(layout).items() if not name.startswith("one project"))
    # One host may be lost.
    fewer = msgspec.structs.replace(layout, hosts=layout.hosts - 1)
    assert planned.elastic(fewer, rate)[Elastic.WEB] <= shape.web_share + 1e-9


@given(MIXES, RATES, st.floats(1, 50))
def test_plan__higher_rate__takes_no_fewer_servers_and_no_fewer_dollars(mix: Mix, rate: float, times: float) -> None:
    planned = Model(MEASURED, mix)
    low, high = planned.plan(rate), planned.plan(rate * times)

    assert whole(low)["all"] <= whole(high)["all"]
    assert whole(low)["hosts"] <= whole(high)["hosts"]
    assert planned.stored_gb(rate) <= planned.stored_gb(rate * times)
    # Servers come in whole sizes: seven of 8 cores may be dearer than eight of 4.
    assert sum(planned.dollars(low, PRICES).values()) <= sum(planned.dollars(high, PRICES).values()) * 1.5


@tabled
@given(mix=MIXES, rate=RATES)
def test_plan__more_of_anything__takes_no_fewer_dollars(name: str, mix: Mix, rate: float) -> None:
    half = msgspec.structs.replace(
        mix, **{name: max(getattr(mix, name) / 2, 1.0 if name == "retention_days" else 0.01)}
    )
    less, more = Model(MEASURED, half), Model(MEASURED, mix)
    if getattr(half, name) > getattr(mix, name):
        less, more = more, less

    cheap, dear = (sum(asked.dollars(asked.plan(rate), PRICES).values()) for asked in (less, more))

    # Servers come in whole sizes: seven of 8 cores may be dearer than eight of 4.
    assert cheap <= dear * 1.5


@settings(max_examples=examples(10, 100))
@given(MIXES)
def test_plan__many_installations__grow_in_proportion(mix: Mix) -> None:
    planned = Model(MEASURED, mix)
    # Both take several installations, each of whole servers.
    ten_million, hundred = planned.plan(1e7), planned.plan(1e8)

    assert whole(hundred)["hosts"] == pytest.approx(10 * whole(ten_million)["hosts"], rel=0.3)
    less, more = (sum(planned.dollars(layout, PRICES).values()) for layout in (ten_million, hundred))
    assert more == pytest.approx(10 * less, rel=0.3)
    assert planned.stored_gb(1e8) == pytest.approx(10 * planned.stored_gb(1e7))


@given(MIXES, RATES)
def test_ceilings__at_the_first_one__that_part_is_full_and_no_other_more_so(mix: Mix, rate: float) -> None:
    planned = Model(MEASURED, mix)
    layout = planned.plan(rate)
    first, ceiling = next(iter(planned.ceilings(layout).items()))

    used = planned.elastic(layout, ceiling)

    assert used[first] == pytest.approx(1, rel=1e-6)
    assert max(used.values()) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "fields", "first"),
    [
        (10_000, {"texts": 0, "seconds": 1, "streams": 1, "retention_days": 1}, Elastic.WEB),
        (10_000, {"texts": 0, "seconds": 120, "retention_days": 1}, Elastic.ANSWERS),
        (10_000, {"retention_days": 400}, Elastic.DISK),
        (10_000, {"texts": 0, "sessions": 1, "retention_days": 1}, Elastic.BUDGETS),
        (3_000, {"streams": 0, "seconds": 0.1, "texts": 0, "retention_days": 1, "request_bytes": 500}, Elastic.REDIS),
    ],
)
def test_ceilings__mix_that_is_heavy_on_one_part__name_it(
    rate: float, fields: dict[str, float], first: Elastic
) -> None:
    asked = model(**fields)

    assert next(iter(asked.ceilings(asked.plan(rate)))) is first


def test_installation__hosts_of_more_workers__have_fewer_batches_to_insert() -> None:
    small, large = (Model(MEASURED, Mix(), Shape(workers=workers, max_hosts=10_000)) for workers in (2, 16))

    limits = [asked.limits_of_an_installation(asked.plan(100_000))[Fixed.BATCHES] for asked in (small, large)]

    assert limits[1] > 4 * limits[0]


def test_project__whatever_the_installations__has_one_primary_for_its_limits() -> None:
    asked = model()

    limits = [asked.limits_of_an_installation(asked.plan(rate))[Fixed.PROJECT_LIMITS] for rate in (1e3, 1e6)]

    assert limits[0] == pytest.approx(limits[1])
    assert limits[0] * MEASURED.stores.redis_limits_us == pytest.approx(Shape().store_share * 1e6)


@pytest.mark.parametrize(
    "fields",
    [
        {"streams": 1.5},
        {"streams": -0.1},
        {"chunks": float("nan")},
        {"request_bytes": float("inf")},
        {"mean": 0},
        {"retention_days": 0},
    ],
)
def test_mix__nonsense__is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        Mix(**fields)


@pytest.mark.parametrize("fields", [{"workers": 0}, {"store_share": 1.2}, {"shard_gb": -1}])
def test_shape__nonsense__is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"above 0|shares|at least 0"):
        Shape(**fields)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1e12])
def test_plan__rate_that_is_none__is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        model().plan(rate)


def test_plan__single_machine__refuses_what_it_cannot_carry_and_says_what_is_full() -> None:
    with pytest.raises(ValueError, match=r"is enough for [\d,]+ requests a second"):
        model().plan(10_000, single=True)


def test_figures__unknown_or_negative__are_refused_by_name(tmp_path: Path) -> None:
    text = figures.PRICES.read_text(encoding="utf-8")
    file = tmp_path / "prices.toml"
    for wrong, name in (
        (text + "discount = 1\n", "discount"),
        (text.replace("core_hour = ", "core_hour = -"), "core_hour"),
    ):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(msgspec.ValidationError, match=name):
            figures.prices(file)


def test_figures__part_that_is_measured_anew__takes_the_place_of_the_former_one(tmp_path: Path) -> None:
    file = tmp_path / "measured.toml"
    file.write_text(figures.MEASURED.read_text(encoding="utf-8"), encoding="utf-8")
    web = msgspec.structs.replace(MEASURED.web, request_us=77.0, source="here")

    figures.write(web, file)

    assert figures.measured(file) == msgspec.structs.replace(figures.measured(), web=web)
    assert file.read_text(encoding="utf-8").startswith("# ")


def test_page__tables__are_those_that_the_command_prints(tmp_path: Path) -> None:
    copy = tmp_path / "scaling.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")

    write(copy, tables.page(MEASURED, PRICES, Mix(), Shape()))

    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), (
        "python -m benchmarks.scaling --write-docs writes docs/scaling.md anew"
    )


def test_health__messages__are_those_of_the_workers() -> None:
    seconds = (HEALTH_MESSAGES * sync._SECONDS_PER_SUBSCRIBER, HEALTH_MESSAGES_SENT * sync.INTERVAL_SECONDS)

    assert seconds == pytest.approx((1, 1))


@pytest.mark.parametrize("overlay", ["small", "large"])
def test_hosts__of_the_manifests__are_those_of_the_model(overlay: str) -> None:
    resources, shape = build(FOLDER / "overlays" / overlay), Shape()
    (container,) = containers(one(resources, "StatefulSet", "prompt-gateway-web"))
    scaler = one(resources, "HorizontalPodAutoscaler", "prompt-gateway-web")["spec"]
    in_flight, cpu = (
        metric[kind]["target"] for metric, kind in zip(scaler["metrics"], ("pods", "resource"), strict=True)
    )
    cores = float(container["resources"]["requests"]["cpu"])

    assert {"name": "WEB_WORKERS", "value": str(shape.workers)} in container["env"]
    assert cpu["averageUtilization"] == shape.web_share * 100
    assert scaler["maxReplicas"] <= shape.max_hosts
    # Whatever the answers are, so many leave a host with CPU to spare, and not many more would.
    assert 0.6 <= int(in_flight["averageValue"]) / model().in_flight_of_any(cores) <= 1
