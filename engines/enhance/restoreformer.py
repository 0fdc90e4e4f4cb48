"""RestoreFormer and RestoreFormer++ (Wang et al. 2022, 2023)."""

from __future__ import annotations

from engines.enhance.restore import Restorer, one_picture_differences, opened
from engines.family import Graph, Kind, Kit, ModelFile, families

SIDE, TEMPLATE = 512, "ffhq_512"


class RestoreFormerFamily:
    """`input` [1, 3, 512, 512] → a picture of the same shape, and in VisoMaster's file three outputs more, which are not looked at. A file
    with the picture alone has the graph of GFPGAN and GPEN 512, and is treated alike."""

    kind = Kind.ENHANCER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        return one_picture_differences(graph, (SIDE,))

    def open(self, model: ModelFile, kit: Kit) -> Restorer:
        return opened(model, kit, TEMPLATE)


families.register("restoreformer")(RestoreFormerFamily())
