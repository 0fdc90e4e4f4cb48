"""What a look needs at its first picture is done before a lane has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numba
import numpy as np
import pytest

import engines.mask.shapes
import rt.compose.host
import rt.compose.seam
from engines.face import Landmarks, SourceFace
from engines.jit import Compiled
from engines.mask.contract import Cover
from engines.mask.hands import HandsMask
from engines.mask.mouth import MouthMask
from engines.swap.echo import echo
from engines.swap.mesh import kernels
from engines.swap.mesh.swapper import MeshSwapper
from rt.compose.rehearsal import grey_face, rehearse, rehearse_recogniser
from rt.options import Look


class Watched:
    """A mask and an enhancer that say what they were asked."""

    name = "watched"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        self.asked.append("looked")
        return [lambda patch: self.asked.append(f"covered {patch.alpha.max()}") for _ in faces]

    def enhance(self, image: np.ndarray, points: np.ndarray) -> None:
        self.asked.append(f"enhanced {image.shape} {points.shape} {points.dtype}")

    def embed(self, image: np.ndarray, five: np.ndarray) -> None:
        self.asked.append(f"known {five.shape}")


def test_every_loop_of_the_compositor_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = [
        (module, name, Compiled(loop._function, loop._signature))
        for module in (engines.mask.shapes, rt.compose.host, rt.compose.seam)
        for name, loop in vars(module).items()
        if isinstance(loop, Compiled)
    ]
    assert len(loops) >= 6
    for module, name, loop in loops:
        monkeypatch.setattr(module, name, loop)
    rehearse(Look(echo(1)))
    assert [name for _, name, loop in loops if "_compiled" not in vars(loop)] == []


def test_the_mesh_swapper_has_compiled_what_a_photo_and_its_first_picture_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba compiles a loop once for every set of types it is called with."""
    called: set[tuple[object, ...]] = set()

    def noted(name: str, loop: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            called.add((name, *map(numba.typeof, arguments)))
            loop(*arguments)

        return call

    for name in ("sample", "spread", "draw"):
        monkeypatch.setattr(kernels, name, noted(name, getattr(kernels, name)))
    swapper = MeshSwapper()
    swapper.warm_up()
    compiled = called.copy()
    picture, points = grey_face()
    identity = swapper.prepare([SourceFace(picture, Landmarks(points, 1.0), "grey")])
    assert swapper.swap(picture, points, identity, 1, 0) is not None
    assert called == compiled
    assert len(compiled) == 4  # sample reads pictures and flat maps


def test_masks_and_the_enhancer_are_used_once() -> None:
    watched = Watched()
    rehearse(Look(echo(1), masks=(watched,), enhancer=watched))  # type: ignore[arg-type]
    rehearse_recogniser(watched)  # type: ignore[arg-type]
    assert watched.asked == ["looked", "covered 255", "enhanced (160, 160, 3) (468, 3) float32", "known (5, 2)"]


def test_what_follows_hands_has_seen_no_picture_yet() -> None:
    """Else it would look for hands some pictures later."""
    hands = HandsMask()
    before = {name: value for name, value in vars(hands).items() if isinstance(value, int | list)}
    rehearse(Look(echo(1), masks=(hands, MouthMask())))
    assert {name: vars(hands)[name] for name in before} == before


def test_the_grey_face_lies_in_its_picture() -> None:
    picture, points = grey_face()
    assert (points[:, :2] > 0).all()
    assert (points[:, :2] < picture.shape[0]).all()
