"""What is done to a face that is drawn: its colours, its sharpness, where it is worn; and the badge. By pixels, and while live."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER
from faces import face_at
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from standins import bisenet as parsers
from test_mask_families import limit, painted, whole

from app import build
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from engines.detect import detectors
from engines.face import Patch, SourceFace
from engines.face_regions import PARSED, WORN, Region, parsed
from engines.family import Kind
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.mask.bisenet import REGIONS
from engines.swap.mesh.swapper import MeshSwapper
from rt.compose import host
from rt.compose.badge import PLATE, Badge
from rt.compose.seam import match_colours
from rt.errors import OptionError
from rt.frame import Frame
from rt.options import Blending, Corner

# --- sharpness ---


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@given(height=st.integers(8, 60), width=st.integers(8, 60), amount=st.floats(0, 1), seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_sharpening_is_an_unsharp_mask_where_the_patch_covers(height: int, width: int, amount: float, seed: int) -> None:
    import cv2

    pixels = noise(80, 80, seed)
    alpha = np.random.default_rng(seed).integers(0, 256, (height, width), np.uint8)
    alpha[:3] = 0
    before, patch = pixels.copy(), Patch(np.zeros((height, width, 3), np.uint8), alpha, 7, 9)
    host.sharpen(pixels, patch, amount)
    inside = np.s_[9 : 9 + height, 7 : 7 + width]
    region = before[inside].astype(np.float64)
    soft = cv2.GaussianBlur(before[inside], (0, 0), max(host.SHARPEN_MIN_PX, host.SHARPEN_SHARE * width)).astype(np.float64)
    share = amount * host.SHARPEN_MOST * alpha[..., None] / 255
    wanted = np.clip(region + (region - soft) * share, 0, 255)
    assert np.abs(pixels[inside] - wanted).max() <= 1
    outside = np.ones((80, 80), bool)
    outside[inside] = alpha == 0
    assert np.array_equal(pixels[outside], before[outside])


# --- colours ---


@pytest.mark.parametrize("strength", [0.0, 0.25, 1.0])
def test_a_seam_is_matched_so_far_as_asked(strength: float) -> None:
    import cv2

    tint = np.array([30, -20, 10])
    alpha = np.zeros((90, 90), np.uint8)
    alpha[12:-12, 12:-12] = 255
    patch = Patch(np.full((90, 90, 3), 120 - tint, np.uint8), cv2.blur(alpha, (21, 21)), 3, 4)
    match_colours(np.full((100, 100, 3), 120, np.uint8), patch, Blending.SEAMLESS, strength)
    assert np.abs(patch.pixels.astype(int) - (120 - tint * (1 - strength))).max() <= 1


def source(path: Path) -> SourceFace:
    image = open_photo(path)
    (face,) = find_faces(image, detectors["blazeface-full"](), FaceMesh())
    return SourceFace(image, face, str(path))


def test_the_mesh_takes_the_targets_colours_so_far_as_asked() -> None:
    """The same person in blue light: with no match the drawn face is the same in both lights, with all of it as blue as the light."""
    woman, swapper = source(ASTRONAUT), MeshSwapper()
    identity = swapper.prepare([source(HOPPER)])
    blue = np.clip(woman.image * np.array([1.0, 0.7, 0.6]), 0, 255).astype(np.uint8)
    shift = {}
    for match in (0.0, 0.5, 1.0):
        swapper.colour_match = match
        colours = []
        for number, light in enumerate((woman.image, blue)):
            patch = swapper.swap(light, woman.landmarks.points, identity, 10 * number + int(10 * match), 0)
            assert patch is not None
            colours.append(patch.pixels[patch.alpha > 250].mean(0))
        shift[match] = float(colours[0][2] - colours[1][2])
    assert abs(shift[0.0]) < 1
    assert shift[1.0] > 30
    assert 0.3 * shift[1.0] < shift[0.5] < 0.7 * shift[1.0]


# --- where it is worn ---


@pytest.mark.parametrize("regions", [WORN, (Region.FACE,), (Region.FACE, Region.MOUTH, Region.HAIR, Region.GLASSES), (Region.HAT,)])
def test_a_face_parser_keeps_to_the_regions(regions: tuple[Region, ...], tmp_path: Path) -> None:
    file = parsers.bisenet(tmp_path / "x.onnx")
    here = build.parts(Settings(look=LookSettings(regions=regions, masks=(str(file),))))
    mask = here.named(Kind.MASK, str(file))
    image, middles = painted(face_at(310, 240, 90, 12))
    patch = whole()
    limit(mask, image, face_at(310, 240, 90, 12), patch)
    seen = {number for number, (x, y) in enumerate(np.round(middles).astype(int)) if patch.alpha[y, x] > 250}
    here.close()
    assert seen == {REGIONS[name] for name in parsed(regions)}


def test_every_region_is_one_that_parsers_know() -> None:
    names = parsed(Region)
    assert set(PARSED) == set(Region)
    assert set(names) <= set(REGIONS)
    assert len(names) == len(set(names))


def test_a_face_that_is_worn_nowhere_is_refused() -> None:
    with pytest.raises(ValidationError):
        LookSettings(regions=())


# --- the badge ---


@pytest.mark.parametrize("corner", Corner)
@given(width=st.integers(16, 400), height=st.integers(16, 300))
@settings(max_examples=15, deadline=None)
def test_a_badge_stands_in_its_corner_and_changes_nothing_else(corner: Corner, width: int, height: int) -> None:
    pixels = np.full((height, width, 3), 200, np.uint8)
    Badge("AI face", corner).stamp(pixels)
    rows, columns = np.nonzero((pixels != 200).any(-1))
    assert rows.size
    middle = (rows.min() + rows.max() < height - 1, columns.min() + columns.max() < width - 1)
    plate = pixels[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    assert (plate[[0, -1]][:, [0, -1]] == PLATE).all()
    at_top, at_left = corner.value.startswith("top"), corner.value.endswith("left")
    in_the_middle = abs(rows.min() + rows.max() - (height - 1)) <= 1  # where there is no room for a corner
    assert in_the_middle or middle[0] == at_top
    assert middle[1] == at_left or columns.max() - columns.min() + 3 >= width * 0.5


def test_a_badge_can_be_read() -> None:
    """Letters are light on the plate, and other letters are other pixels."""
    pictures = []
    for text in ("AI face", "no face"):
        pixels = np.zeros((360, 640, 3), np.uint8)
        Badge(text, Corner.BOTTOM_RIGHT).stamp(pixels)
        pictures.append(pixels)
    assert pictures[0].max() > 230
    assert not np.array_equal(*pictures)


def test_a_badge_twice_is_the_badge_once() -> None:
    """A frozen picture is shown again."""
    badge, pixels = Badge("AI face", Corner.TOP_LEFT), noise(120, 200)
    badge.stamp(pixels)
    once = pixels.copy()
    badge.stamp(pixels)
    assert np.array_equal(pixels, once)


def test_a_long_badge_is_written_smaller() -> None:
    pixels = np.full((90, 160, 3), 200, np.uint8)
    Badge("W" * 60, Corner.TOP_LEFT).stamp(pixels)
    columns = np.nonzero((pixels != 200).any((0, 2)))[0]
    assert columns.min() > 0
    assert columns.max() < 159


def test_letters_that_no_font_has_are_told() -> None:
    with pytest.raises(OptionError, match="no font here has all its letters"):
        Badge("\U0010fffe", Corner.TOP_LEFT)


def test_a_badge_is_one_line() -> None:
    with pytest.raises(ValidationError):
        LookSettings(badge="two\nlines")


# --- while live ---


class Newest:
    def __init__(self) -> None:
        self.picture = np.empty(0, np.uint8)
        self.count = 0

    def before(self, frame: Frame) -> None:
        pass

    def after(self, frame: Frame) -> None:
        self.picture = frame.pixels.copy()
        self.count += 1


def look(worn: bool = True, **wanted: object) -> Settings:
    return Settings(
        source=SourceSettings(photos=(HOPPER,) if worn else ()),
        input=InputSettings(spec="synthetic:size=640x360,fps=30,motion=0"),
        look=LookSettings(smoothing=0, **wanted),  # type: ignore[arg-type]
        output=OutputSettings(null=True),
    )


def test_sharpness_colours_seam_and_badge_change_while_live_and_come_back() -> None:
    witness = Newest()
    session = LiveSession(look(), witness=witness)
    session.start()

    def shown(wanted: Settings) -> np.ndarray:
        """Once the light has settled: the picture stands still."""
        session.update(wanted)
        target = witness.count + 25
        while witness.count < target:
            assert not session.wait(0.01)
        return witness.picture.astype(int)

    try:
        plain = shown(look())
        badged = shown(look(badge="AI face", badge_corner=Corner.TOP_RIGHT))
        changed = np.nonzero(np.abs(badged - plain).max(-1) > 12)
        assert changed[0].max() < 60
        assert changed[1].min() > 320
        sharp = shown(look(sharpness=1.0))
        rows, columns = (np.abs(sharp - plain).max(-1) > 12).nonzero()
        assert rows.size > 500
        assert columns.min() > 200
        assert columns.max() < 440
        own = shown(look(colour_match=0.0))
        assert np.abs(own - plain).mean() > 0.2
        narrow = shown(look(seam_width=0.1))
        assert np.abs(narrow - plain).max() > 12
        assert np.abs(shown(look()) - plain).mean() < 0.2
        assert np.array_equal(shown(look(worn=False, badge="AI face")), shown(look(worn=False)))
    finally:
        session.close()
