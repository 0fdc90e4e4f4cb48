"""GFPGAN 1.2, 1.3, 1.4 (Wang et al. 2021)."""

from __future__ import annotations

from engines.enhance.restore import Restorer, one_picture_differences, only_output, opened
from engines.family import Graph, Kind, Kit, ModelFile, families

SIDE, TEMPLATE = 512, "ffhq_512"


class GfpganFamily:
    """`input` [1, 3, 512, 512] → `output` (FaceFusion, VisoMaster) or `1288` (roop), the same shape. A GPEN file of 512 pixels has the
    same graph, and is treated alike."""

    kind = Kind.ENHANCER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        return one_picture_differences(graph, (SIDE,)) + only_output(graph)

    def open(self, model: ModelFile, kit: Kit) -> Restorer:
        return opened(model, kit, TEMPLATE)


families.register("gfpgan")(GfpganFamily())
