"""Every name that ffrt takes from TensorRT exists in the bindings it is meant for, as far as they are installed."""

from __future__ import annotations

import pytest
from conftest import ROOT
from trt_api import surface_of, uses_of

HELD = {
    "engines/tensorrt.py": {
        "self._trt_runtime": "Runtime",
        "self._engine": "ICudaEngine",
        "engine": "ICudaEngine",
        "self._context": "IExecutionContext",
        "config": "IRuntimeConfig",
        "self._cached": "IRuntimeCache",
    },
    "engines/build/builder.py": {
        "builder": "Builder",
        "network": "INetworkDefinition",
        "parser": "OnnxParser",
        "config": "IBuilderConfig",
        "tensor": "ITensor",
        "varying": "IOptimizationProfile",
    },
}
"""Where the sources say Any."""

LEAST = {"engines/tensorrt.py": 15, "engines/build/builder.py": 15}
"""A check that finds fewer names than this no longer sees the code."""


@pytest.mark.parametrize("which", ["tensorrt", "rtx"])
@pytest.mark.parametrize("file", HELD)
def test_the_bindings_have_every_name(file: str, which: str) -> None:
    surface = surface_of(which)
    if surface is None:
        pytest.skip(f"the bindings of {which} are not installed")
    uses = uses_of(ROOT / file, surface, which, HELD[file])
    assert [use for use in uses if not use[2]] == []
    assert len({name for _, name, _ in uses}) >= LEAST[file], uses


def test_a_name_that_is_gone_is_noticed(tmp_path) -> None:
    surface = surface_of("rtx")
    if surface is None:
        pytest.skip("the bindings of rtx are not installed")
    source = tmp_path / "old.py"
    source.write_text("config = builder.create_builder_config()\nconfig.set_flag(trt.BuilderFlag.FP16)\n")
    assert (2, "BuilderFlag.FP16", False) in uses_of(source, surface, "rtx", {"builder": "Builder"})
