"""inswapper (InsightFace): 128 pixels; and what was trained again on its contract (reswapper 128 and 256, InStyleSwapper 256)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, families
from engines.identity.contract import Embedding
from engines.swap.embedding import arcface_feed, embedding_differences, has_emap, of_length_one
from engines.swap.neural import NeuralSwapper, Recipe, opened, target_side

TEMPLATE = "arcface_128"

HALF_BREAKS_ON = ("ort:CPU", "ort:CUDA")
"""Where the file with half-precision weights gives black or distorted faces (microsoft/onnxruntime issue 19437)."""


class InswapperFamily:
    """Told from other swappers by its emap, the last initializer of the file."""

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        found = embedding_differences(graph, None)
        if not has_emap(graph):
            found += ("its last initializer is no matrix [512, 512]",)
        return found

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        feed = arcface_feed(kit, latent_by(read_emap(model.path)))
        swapper = opened(model, kit, Recipe(TEMPLATE, target_side(model.graph, 128)), feed)
        last = model.graph.last_initializer
        if last is not None and last.dtype == np.float16 and swapper.runtime.startswith(HALF_BREAKS_ON):
            raise ModelError(
                f"{model.name} has half-precision weights, which give black or distorted faces on {swapper.runtime}; "
                "use the float32 file (inswapper_128), from which a half-precision engine can be built"
            )
        return swapper


def latent_by(emap: np.ndarray) -> Callable[[Embedding], np.ndarray]:
    """The family's own step: the normed embedding times ``emap`` float32 [512, 512], then made of length 1.

    As in InsightFace's own inswapper class. FaceFusion leaves out the last norm, DeepFaceLive feeds its recogniser otherwise.
    """
    return lambda embedding: of_length_one(embedding.normed @ emap)


def read_emap(path: Path) -> np.ndarray:
    """float32 [512, 512]: the last initializer. Raises ``ModelError``."""
    import onnx

    try:
        tensor = onnx.load(path, load_external_data=False).graph.initializer[-1]
        emap = onnx.numpy_helper.to_array(tensor)
    except Exception as error:  # of protobuf's and onnx's own classes, straight from Exception
        raise ModelError(f"the last initializer of {path.name} cannot be read: {error}; pull or import the file again") from error
    if emap.shape != (512, 512) or not np.isfinite(emap).all():
        raise ModelError(f"the last initializer of {path.name} is {list(emap.shape)}, not a matrix [512, 512]; it is no inswapper file")
    return emap.astype(np.float32)


families.register("inswapper")(InswapperFamily())
