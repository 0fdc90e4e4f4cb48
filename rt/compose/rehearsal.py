"""Everything that draws, used once before it is needed: loops are compiled, and networks allocate, at their first run."""

from __future__ import annotations

import numpy as np

from engines.align import five_of_mesh
from engines.detect.contract import Detector
from engines.face import Patch
from engines.identity.contract import Recogniser
from engines.mask.contract import ShapeMask
from engines.mesh.topology import topology
from engines.session import RunsNetworks
from rt.compose import host, seam
from rt.options import Look

SIDE = 160
"""Of the grey picture."""


def rehearse(look: Look) -> None:
    """On the thread that prepares ``look``, which no lane has yet: seconds, once, that a lane would stand still for.

    Raises what the first picture would.
    """
    host.warm_up()
    seam.warm_up()
    if look.swapper is not None:
        look.swapper.warm_up()
    picture, points = grey_face()
    for mask in look.masks:
        if isinstance(mask, RunsNetworks):
            for session in mask.networks.values():
                session.warm_up()
        if not isinstance(mask, ShapeMask):  # shapes are drawn by the host, whoever names them
            for cover in mask.covers(picture, [points]):
                cover(Patch(picture.copy(), np.full(picture.shape[:2], 255, np.uint8), 0, 0))
    if look.enhancer is not None:
        look.enhancer.enhance(picture, points)


def grey_face() -> tuple[np.ndarray, np.ndarray]:
    """uint8 [160, 160, 3] BGR, and float32 [468, 3] FaceMesh landmarks in its middle."""
    middle = SIDE / 2
    return np.full((SIDE, SIDE, 3), 128, np.uint8), (topology().shape * (0.75 * middle) + [middle, middle, 0]).astype(np.float32)


def rehearse_detector(detector: Detector) -> None:
    """The same for what looks for faces."""
    detector.detect(grey_face()[0])


def rehearse_recogniser(recogniser: Recogniser) -> None:
    """The same for what knows people again, which the tracker does not have yet."""
    picture, points = grey_face()
    recogniser.embed(picture, five_of_mesh(points))
