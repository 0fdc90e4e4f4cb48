"""HifiFace (Wang et al. 2021), the unofficial export of 256 pixels, fed through crossface_hififace."""

from __future__ import annotations

from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families
from engines.swap.embedding import converted_feed, embedding_differences, has_emap
from engines.swap.neural import NeuralSwapper, Recipe, opened
from engines.tensor import SIGNED

SIDE, TEMPLATE = 256, "mtcnn_512"


class HififaceFamily:
    """Graph as SimSwap's of 256 pixels: only the file's hash or its owner can tell them apart."""

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        found = embedding_differences(graph, SIDE)
        if has_emap(graph):
            found += ("its last initializer is an emap",)
        if len(graph.outputs) != 1:
            found += built_otherwise(graph, "one output")
        return found

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        recipe = Recipe(TEMPLATE, SIDE, given=SIGNED, made=SIGNED)
        return opened(model, kit, recipe, converted_feed(kit, "crossface_hififace", normed=True))


families.register("hififace")(HififaceFamily())
