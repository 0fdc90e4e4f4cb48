"""GPEN (Yang et al. 2021), GPEN-BFR of 256, 512, 1024 and 2048 pixels."""

from __future__ import annotations

from engines.enhance.restore import Restorer, one_picture_differences, only_output, opened, side_of
from engines.family import Graph, Kind, Kit, ModelFile, families

TEMPLATES = {256: "arcface_128", 512: "ffhq_512", 1024: "ffhq_512", 2048: "ffhq_512"}
"""Side of the crop → where the five points lie: FaceFusion's."""


class GpenFamily:
    """`input` [1, 3, S, S] → `output`, the same shape. A GFPGAN file has the graph of the one of 512, and is treated alike."""

    kind = Kind.ENHANCER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        return one_picture_differences(graph, tuple(TEMPLATES)) + only_output(graph)

    def open(self, model: ModelFile, kit: Kit) -> Restorer:
        return opened(model, kit, TEMPLATES[side_of(model.graph.inputs[0])])


families.register("gpen")(GpenFamily())
