"""BlendSwap (Shiohara et al. 2023), export of 256 pixels: the source is a picture of 112."""

from __future__ import annotations

from engines.family import Graph, Kind, Kit, ModelFile, families
from engines.swap.neural import NeuralSwapper, Recipe, opened
from engines.swap.picture import PictureFeed, picture_differences

SIDE, TEMPLATE = 256, "ffhq_512"
SOURCE_SIDE, SOURCE_TEMPLATE = 112, "arcface_112_v2"


class BlendswapFamily:
    """Source and target in [0, 1], told apart by their sizes."""

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        return picture_differences(graph, SOURCE_SIDE, SIDE)

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        return opened(model, kit, Recipe(TEMPLATE, SIDE), PictureFeed(SOURCE_TEMPLATE, SOURCE_SIDE))


families.register("blendswap")(BlendswapFamily())
