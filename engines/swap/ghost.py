"""GHOST 1, 2, 3 (Groshev et al. 2022): 256 pixels, fed through crossface_ghost."""

from __future__ import annotations

from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families
from engines.swap.embedding import converted_feed, embedding_differences, has_emap
from engines.swap.neural import NeuralSwapper, Recipe, opened
from engines.tensor import SIGNED

SIDE, TEMPLATE = 256, "arcface_112_v1"


class GhostFamily:
    """Its embedding keeps its length: it is not normed after the converter (FaceFusion). VisoMaster embeds by GHOST's own recogniser, to
    whose space the converter leads, and picks one of five templates by the pose."""

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
        return opened(model, kit, recipe, converted_feed(kit, "crossface_ghost", normed=False))


families.register("ghost")(GhostFamily())
