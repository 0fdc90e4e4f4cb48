"""UniFace (Xu et al. 2022), export of 256 pixels: the source is a picture, too."""

from __future__ import annotations

from engines.family import Graph, Kind, Kit, ModelFile, families
from engines.swap.neural import NeuralSwapper, Recipe, opened
from engines.swap.picture import PictureFeed, picture_differences
from engines.tensor import SIGNED

SIDE, TEMPLATE = 256, "ffhq_512"
"""The same for source and target; the source's values lie in [0, 1], the target's in [-1, 1]."""


class UnifaceFamily:
    """Two pictures of one size: the target is the input of that name, or the last."""

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        return picture_differences(graph, SIDE, SIDE)

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        return opened(model, kit, Recipe(TEMPLATE, SIDE, given=SIGNED, made=SIGNED), PictureFeed(TEMPLATE, SIDE))


families.register("uniface")(UnifaceFamily())
