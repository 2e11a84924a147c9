from __future__ import annotations

import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]


def test_files__all_imports__form_no_circle() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*packages, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    assert "gateway.pipeline.run" in imports["gateway.consumers"]
    TopologicalSorter(imports).prepare()  # This call raises CycleError, which names the files of a cycle.
