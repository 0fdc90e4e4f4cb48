"""A person's folder of models: a stand-in of every family, imported as a person would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from app.models import Models
from engines.store.shelf import Shelf
from standins import identity, swappers
from standins.bisenet import bisenet
from standins.codeformer import codeformer
from standins.fan4_2d import fan4_2d
from standins.fan_68_5 import fan_68_5
from standins.gfpgan import gfpgan
from standins.gpen import gpen
from standins.insight_3d68 import insight_3d68
from standins.insight_106 import insight_106
from standins.peppa_wutz import peppa_wutz
from standins.restoreformer import restoreformer
from standins.scrfd import scrfd
from standins.swappers import Contract
from standins.xseg import xseg
from standins.yoloface import yoloface
from standins.yunet import yunet

HALF, IMAGENET = ((0.5,) * 3, (0.5,) * 3), ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

SWAPPERS: dict[str, tuple[str, Contract]] = {
    "inswapper_128": ("inswapper", Contract(128, emap=True)),
    "hyperswap_1a_256": ("hyperswap", Contract(256, given=HALF, made=HALF, mask=True, outputs=("output", "mask"))),
    "simswap_256": ("simswap", Contract(256, given=IMAGENET)),
    "simswap_unofficial_512": ("simswap", Contract(512)),
    "ghost_1_256": ("ghost", Contract(256, given=HALF, made=HALF, outputs=("781",))),
    "hififace_unofficial_256": ("hififace", Contract(256, given=HALF, made=HALF)),
    "cscs_256": ("cscs", Contract(256, given=HALF, made=HALF, inputs=("input_1", "input_2"))),
    "uniface_256": ("uniface", Contract(256, given=HALF, made=HALF, source_side=256)),
    "blendswap_256": ("blendswap", Contract(256, source_side=112)),
}

PERSON = "person"
"""The DFM file, which needs no photo."""

OTHERS: dict[str, dict[str, tuple[str, Callable[[Path], Path]]]] = {
    "detector": {"scrfd_2.5g": ("scrfd", scrfd), "yoloface_8n": ("yoloface", yoloface), "yunet_2023_mar": ("yunet", yunet)},
    "landmarks": {
        "2dfan4": ("2dfan4", fan4_2d),
        "peppa_wutz": ("peppa_wutz", peppa_wutz),
        "2d106det": ("insight_106", insight_106),
        "1k3d68": ("insight_3d68", insight_3d68),
        "fan_68_5": ("fan_68_5", fan_68_5),
    },
    "identity": {"arcface_w600k_r50": ("arcface", identity.arcface)},
    "enhancer": {
        "gfpgan_1.4": ("gfpgan", gfpgan),
        "codeformer": ("codeformer", codeformer),
        "gpen_bfr_256": ("gpen", gpen),
        "restoreformer_plus_plus": ("restoreformer", lambda path: restoreformer(path, others=True)),
    },
    "mask": {"xseg_1": ("xseg", xseg), "bisenet_resnet_34": ("bisenet", bisenet)},
}
"""Option of the command line → name → family and generator."""

CONVERTERS = ("crossface_simswap", "crossface_ghost", "crossface_hififace")

RECOGNISERS = {"cscs_arcface_model": 21, "cscs_id_adapter": 22}
"""Those that but one swapper uses → seed of the stand-in."""


def write_swapper(folder: Path, name: str) -> Path:
    """The stand-in of the swapper of that name, or of the DFM file."""
    if name == PERSON:
        return swappers.dfm(folder / f"{name}.dfm")
    return swappers.swapper(folder / f"{name}.onnx", SWAPPERS[name][1])


def fill(given: Path, folder: Path, others: Mapping[str, Mapping[str, tuple[str, Callable[[Path], Path]]]] = OTHERS) -> Path:
    """Writes all of them into ``given`` and imports them into ``folder``, which is returned."""
    models = Models(Shelf(folder))
    for number, name in enumerate(CONVERTERS):
        models.import_file(identity.crossface(given / f"{name}.onnx", number))
    for name, seed in RECOGNISERS.items():
        models.import_file(identity.arcface(given / f"{name}.onnx", seed=seed))
    for name, (family, _) in SWAPPERS.items():
        models.import_file(write_swapper(given, name), family)
    models.import_file(write_swapper(given, PERSON))
    for kind in others.values():
        for name, (family, make) in kind.items():
            models.import_file(make(given / f"{name}.onnx"), family)
    return folder
