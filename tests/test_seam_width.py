"""The width of the seam: every swapper's face fades out over so much, and ends where it ended before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER
from kit import FolderKit, model_file
from standins import swappers as standins

import engines.swap  # noqa: F401  registers the families
from engines.detect import detectors
from engines.family import families
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.swap.contract import FadesAtSeam, SourceFace
from engines.swap.echo import echo
from engines.swap.mesh.swapper import MeshSwapper

WIDTHS = (0.1, 0.5, 1.0, 1.6, 2.0)


def photo_of(path: Path) -> SourceFace:
    image = open_photo(path)
    (face,) = find_faces(image, detectors["blazeface-full"](), FaceMesh())
    return SourceFace(image, face, path.name)


@pytest.fixture(scope="module")
def woman() -> SourceFace:
    return photo_of(ASTRONAUT)


@pytest.fixture(scope="module")
def man() -> SourceFace:
    return photo_of(HOPPER)


def dfm(folder: Path) -> Any:
    return families["dfm"].open(model_file(standins.dfm(folder / "person.dfm"), "dfm"), FolderKit())


SWAPPERS: dict[str, Callable[[Path], Any]] = {"mesh": lambda _: MeshSwapper(), "crop": lambda _: echo(), "dfm": dfm}


@pytest.mark.parametrize("kind", SWAPPERS)
def test_a_wider_seam_fades_from_further_inside(kind: str, woman: SourceFace, man: SourceFace, tmp_path: Path) -> None:
    swapper = SWAPPERS[kind](tmp_path)
    assert isinstance(swapper, FadesAtSeam)
    assert swapper.seam_width == 1
    identity = swapper.prepare([man])
    whole, seen, shapes = [], [], []
    for width in WIDTHS:
        swapper.seam_width = width
        patch = swapper.swap(woman.image, woman.landmarks.points, identity, 1, 0)
        whole.append(int((patch.alpha >= 250).sum()))
        seen.append(int(patch.alpha.sum()))
        shapes.append(patch.alpha.shape)
    assert whole == sorted(set(whole), reverse=True), "less of the face is worn whole"
    assert seen == sorted(set(seen), reverse=True), "and less of it in all"
    assert whole[0] > 1.1 * whole[-1] > 0
    assert len(set(shapes)) == 1


def test_a_width_that_comes_back_draws_as_before(woman: SourceFace, man: SourceFace) -> None:
    swapper = MeshSwapper()
    identity = swapper.prepare([man])
    shown = []
    for width in (1.0, 0.3, 1.0):
        swapper.seam_width = width
        patch = swapper.swap(woman.image, woman.landmarks.points, identity, 1, 0)
        assert patch is not None
        shown.append(patch.alpha.copy())
    assert np.array_equal(shown[0], shown[2])
    assert not np.array_equal(shown[0], shown[1])
