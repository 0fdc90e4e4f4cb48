"""Every family knows its own files by their graphs, refuses all others, and says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit import graph_of
from standins.bisenet import bisenet
from standins.codeformer import codeformer
from standins.fan4_2d import fan4_2d
from standins.fan_68_5 import fan_68_5
from standins.gfpgan import gfpgan
from standins.gpen import gpen
from standins.identity import arcface, crossface
from standins.insight_3d68 import insight_3d68
from standins.insight_106 import insight_106
from standins.peppa_wutz import peppa_wutz
from standins.restoreformer import restoreformer
from standins.scrfd import scrfd
from standins.swappers import Contract, dfm, swapper
from standins.xseg import xseg
from standins.yoloface import yoloface
from standins.yunet import yunet

import engines.detect
import engines.enhance
import engines.identity
import engines.landmarks
import engines.mask
import engines.swap  # noqa: F401  all of them register families
from engines.family import Graph, Kind, families
from engines.session import TensorSpec

RESTORERS = {"gfpgan", "gpen", "restoreformer"}
"""Their files of 512 pixels with one output have one graph. Nothing comes of a mistake: they are treated alike."""

FILES: dict[str, tuple[Callable[[Path], Path], set[str]]] = {
    "scrfd of insightface": (scrfd, {"scrfd"}),
    "scrfd of facefusion": (lambda path: scrfd(path, insightface=False), {"scrfd"}),
    "scrfd of 640": (lambda path: scrfd(path, side=640), {"scrfd"}),
    "yoloface": (yoloface, {"yoloface"}),
    "yoloface of visomaster": (lambda path: yoloface(path, name="images"), {"yoloface"}),
    "yunet": (yunet, {"yunet"}),
    "2dfan4": (fan4_2d, {"2dfan4"}),
    "peppa_wutz": (peppa_wutz, {"peppa_wutz"}),
    "2d106det": (insight_106, {"insight_106"}),
    "1k3d68": (insight_3d68, {"insight_3d68"}),
    "fan_68_5": (fan_68_5, {"fan_68_5"}),
    "xseg": (xseg, {"xseg"}),
    "xseg of roop": (lambda path: xseg(path, name="xseg_input:0"), {"xseg"}),
    "xseg of visomaster": (lambda path: xseg(path, planar=True), {"xseg"}),
    "bisenet": (bisenet, {"bisenet"}),
    "bisenet with three outputs": (lambda path: bisenet(path, others=2), {"bisenet"}),
    "gfpgan": (gfpgan, RESTORERS),
    "gfpgan of roop": (lambda path: gfpgan(path, output="1288"), RESTORERS),
    "restoreformer": (restoreformer, RESTORERS),
    "restoreformer of visomaster": (lambda path: restoreformer(path, others=True), {"restoreformer"}),
    "gpen_256": (gpen, {"gpen"}),
    "gpen_512": (lambda path: gpen(path, side=512), RESTORERS),
    "gpen_1024": (lambda path: gpen(path, side=1024), {"gpen"}),
    "gpen_2048": (lambda path: gpen(path, side=2048), {"gpen"}),
    "codeformer": (codeformer, {"codeformer"}),
    "codeformer of visomaster": (lambda path: codeformer(path, visomaster=True), {"codeformer"}),
    "arcface": (arcface, {"arcface"}),
    "crossface": (lambda path: crossface(path, 1), {"crossface"}),
    "inswapper": (lambda path: swapper(path, Contract(128, emap=True)), {"inswapper"}),
    "hyperswap": (lambda path: swapper(path, Contract(256, mask=True, outputs=("output", "mask"))), {"hyperswap"}),
    "dfm": (dfm, {"dfm"}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_its_familys_alone(name: str, tmp_path: Path) -> None:
    make, wanted = FILES[name]
    graph = graph_of(make(tmp_path / "x.onnx"))
    said = {family: families[family].differences(graph) for family in families}
    assert {family for family, clauses in said.items() if not clauses} == wanted
    for family, clauses in said.items():
        assert all(clause.startswith(("its ", "it has ")) for clause in clauses), (family, clauses)


@pytest.mark.parametrize(
    ("family", "name", "said"),
    [
        ("scrfd", "gfpgan", "it has 1 output, not 9"),
        ("scrfd", "yunet", "it has 12 outputs, not 9"),
        ("yunet", "scrfd of insightface", "it has 9 outputs, not 12"),
        ("yoloface", "gfpgan", "its output is [1, 3, 512, 512], not [any, 20, any]"),
        ("2dfan4", "peppa_wutz", "it has 1 input and 1 output, not one and two"),
        ("peppa_wutz", "2d106det", "its input is [None, 3, 192, 192], not [any, 3, 256, 256]"),
        ("insight_106", "1k3d68", "its output is [None, 3309], not [any, 212]"),
        ("insight_3d68", "2d106det", "its output is [None, 212], not [any, 3309]"),
        ("fan_68_5", "crossface", "its input is [1, 512], not [any, 5, 2]"),
        ("xseg", "gpen_256", "its output is [1, 3, 256, 256], not [any, 1, 256, 256]"),
        ("bisenet", "gfpgan", "its first output is [1, 3, 512, 512], not [any, 19, 512, 512]"),
        ("gfpgan", "gpen_1024", "its picture has a side of 1024, not of 512"),
        ("gfpgan", "codeformer", "it has 2 inputs and 1 output, not one input"),
        ("gfpgan", "restoreformer of visomaster", "it has 1 input and 4 outputs, not one output"),
        ("gpen", "xseg", "its picture is [n, 256, 256, 3], not [any, 3, any, any]"),
        ("codeformer", "gfpgan", "it has 1 input and 1 output, not a picture and a weight"),
        ("restoreformer", "gpen_256", "its picture has a side of 256, not of 512"),
    ],
)
def test_a_refusal_says_what_differs(family: str, name: str, said: str, tmp_path: Path) -> None:
    clauses = families[family].differences(graph_of(FILES[name][0](tmp_path / "x.onnx")))
    assert said in clauses, clauses


EMPTY = Graph((), ())
SCALAR = TensorSpec("x", (), np.dtype(np.float32))
ODD = [
    EMPTY,
    Graph((SCALAR,), (SCALAR,)),
    Graph((SCALAR, SCALAR), ()),
    Graph((SCALAR,), (SCALAR,) * 9),
    Graph((SCALAR,), (SCALAR,) * 12),
    Graph((TensorSpec("x", ("a", "b", "c", "d"), np.dtype(np.uint8)),), (SCALAR,)),
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_odd_graphs_are_refused_and_break_nothing(number: int) -> None:
    for name in families:
        assert families[name].differences(ODD[number]), name


def test_every_kind_of_part_has_families() -> None:
    assert {families[name].kind for name in families} == set(Kind)
