"""The measurement of the parts runs, whatever it measures: a row for each part, and nothing left open."""

from __future__ import annotations

from app.bench.parts import run_parts_bench


def test_every_part_has_its_row() -> None:
    result = run_parts_bench(1, lambda done, of, what: None)
    names = [cost["part"] for cost in result["costs"]]
    assert "a frame on a device, all but its kernels: mesh" in names
    assert len(set(zip(names, (cost["picture"] + str(cost["face_px"]) for cost in result["costs"]), strict=True))) == len(names)
    assert all(0 < cost["median_ms"] <= cost["p95_ms"] for cost in result["costs"])
