"""The mesh swapper on portraits that ship with the program: what it draws, what it leaves alone, how its light settles."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import pytest
from faces import face_at
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bench.measures import landmark_error
from engines.detect import detectors
from engines.errors import PhotoError
from engines.face import Landmarks
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.landmarks.find import find_faces
from engines.mesh import regions
from engines.mesh.topology import topology
from engines.swap import swappers
from engines.swap.contract import SourceFace
from engines.swap.mesh.colour import LOG_OFFSET, LUMA
from engines.swap.mesh.facing import Facing
from engines.swap.mesh.identity import MeshIdentity, prepare
from engines.swap.mesh.light import Light, Nearness, contrast
from engines.swap.mesh.swapper import MeshSwapper
from engines.swap.mesh.texture import SIDE, Texture, spread, unwrap
from rt.compose.host import blend

FRAME_NS = 33_333_333


def source(path: object) -> SourceFace:
    image = open_photo(path)
    (face,) = find_faces(image, detectors["blazeface-full"](), FaceMesh())
    return SourceFace(image, face, str(path))


@pytest.fixture(scope="module")
def portraits() -> tuple[SourceFace, SourceFace]:
    from conftest import ASTRONAUT, HOPPER

    return source(ASTRONAUT), source(HOPPER)


@pytest.fixture(scope="module")
def woman(portraits: Sequence[SourceFace]) -> SourceFace:
    return portraits[0]


@pytest.fixture(scope="module")
def worn(portraits: Sequence[SourceFace]) -> MeshIdentity:
    return MeshSwapper().prepare([portraits[1]])


def dress(swapper: MeshSwapper, image: np.ndarray, points: np.ndarray, identity: MeshIdentity, at_ns: int = 0) -> np.ndarray:
    out = image.copy()
    patch = swapper.swap(image, points, identity, 1, at_ns)
    assert patch is not None
    blend(out, patch)
    return out


def filled(rings: Sequence[Sequence[int]], points: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape[:2], np.uint8)
    for ring in rings:
        cv2.fillPoly(mask, [np.round(points[list(ring), :2]).astype(np.int32)], 1)
    return mask.astype(bool)


def skin_of(points: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The middle of the face without eyes and lips: what shows between smiling lips is changed on purpose."""
    centre = points[regions.OVAL].mean(0)
    inner = centre + (points - centre) * 0.7
    inside = filled([regions.OVAL], inner, shape)
    lips = cv2.convexHull(points[regions.LIPS, :2].astype(np.float32)).reshape(-1, 2)
    outside = np.ones(shape[:2], np.uint8)
    cv2.fillPoly(outside, [np.round(lips).astype(np.int32)], 0)
    return inside & outside.astype(bool) & ~filled([regions.LEFT_EYE, regions.RIGHT_EYE], points, shape)


def test_it_is_registered() -> None:
    assert isinstance(swappers["mesh"](), MeshSwapper)


def test_a_face_worn_by_its_owner_is_nearly_the_same_picture(woman: SourceFace) -> None:
    """Taken out and put back: what is lost is resampling (this face is 94 pixels wide), noise that was cleaned, and shading finer
    than the light's 0.28 inter-ocular distances. 8.3 grey levels of 255 on average, which is less than a blur of 3 pixels
    does (11.5), and 3.6 of the mean: what was white of shine is skin now, and its blue is lost."""
    swapper = MeshSwapper()
    out = dress(swapper, woman.image, woman.landmarks.points, swapper.prepare([woman]))
    skin = skin_of(woman.landmarks.points, out.shape)
    difference = out[skin].astype(int) - woman.image[skin]
    blurred = cv2.GaussianBlur(woman.image, (0, 0), 3)[skin].astype(int) - woman.image[skin]
    assert np.abs(difference).mean() < min(9, np.abs(blurred).mean())
    assert np.abs(difference.mean(0)).max() < 4


def test_another_face_is_another_picture_in_the_same_light(woman: SourceFace, worn: MeshIdentity) -> None:
    out = dress(MeshSwapper(), woman.image, woman.landmarks.points, worn)
    skin = skin_of(woman.landmarks.points, out.shape)
    before, after = woman.image[skin].astype(float), out[skin].astype(float)
    assert np.abs(after - before).mean() > 4
    np.testing.assert_allclose(after.mean(0), before.mean(0), rtol=0.12)


def test_eyes_and_open_mouth_stay_the_targets_own(woman: SourceFace, worn: MeshIdentity) -> None:
    """Bit for bit, within the inner rings; enlarged, so that there are pixels enough."""
    image = cv2.resize(woman.image, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    points = woman.landmarks.points * np.float32(3)
    out = dress(MeshSwapper(), image, points, worn)
    rings, first, extended = [], 468, topology().extend(points)
    for outer in (regions.RIGHT_EYE, regions.LEFT_EYE, regions.INNER_MOUTH):
        rings.append(range(first, first + len(outer)))
        first += len(outer)
    inner = cv2.erode(filled(rings, extended, image.shape).astype(np.uint8), np.ones((3, 3))).astype(bool)
    for outer in (regions.RIGHT_EYE, regions.LEFT_EYE, regions.INNER_MOUTH):
        assert (inner & filled([outer], points, image.shape)).sum() > 20
    np.testing.assert_array_equal(out[inner], image[inner])


@settings(max_examples=80, deadline=None)
@given(
    x=st.floats(-200, 500), y=st.floats(-200, 400), eyes_px=st.floats(0.5, 260), roll=st.floats(-3.2, 3.2),
    yaw=st.floats(-1.5, 1.5), pitch=st.floats(-1.2, 1.2),
)  # fmt: skip
def test_any_pose_anywhere_stays_within_the_frame_and_the_oval(
    worn: MeshIdentity, x: float, y: float, eyes_px: float, roll: float, yaw: float, pitch: float
) -> None:
    image = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
    before = image.copy()
    points = (topology().shape @ turn(roll, yaw, pitch) * eyes_px + [x, y, 0]).astype(np.float32)
    patch = MeshSwapper().swap(image, points, worn, 1, 0)
    np.testing.assert_array_equal(image, before)
    if patch is None:
        return
    height, width = patch.alpha.shape
    assert patch.pixels.shape == (height, width, 3)
    assert 0 <= patch.left <= patch.left + width <= 320
    assert 0 <= patch.top <= patch.top + height <= 240
    rows, columns = np.nonzero(patch.alpha)
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    assert (columns + patch.left >= low[0] - 1).all()
    assert (columns + patch.left <= high[0] + 1).all()
    assert (rows + patch.top >= low[1] - 1).all()
    assert (rows + patch.top <= high[1] + 1).all()


def turn(roll: float, yaw: float, pitch: float) -> np.ndarray:
    """Rows times this are turned about z, then y, then x."""
    axes = np.eye(3)
    vectors = (np.array(axis) * angle for axis, angle in zip(axes[::-1], (roll, yaw, pitch), strict=True))
    out = axes
    for vector in vectors:
        out = out @ cv2.Rodrigues(vector)[0].T
    return out


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_no_numbers_draw_nothing(woman: SourceFace, worn: MeshIdentity, bad: float) -> None:
    points = woman.landmarks.points.copy()
    points[7, 1] = bad
    assert MeshSwapper().swap(woman.image, points, worn, 1, 0) is None


def test_a_face_outside_or_of_a_few_pixels_draws_nothing(woman: SourceFace, worn: MeshIdentity) -> None:
    shape = topology().shape
    for points in (shape * 50 + [-300, 100, 0], shape * 50 + [100, 2000, 0], shape * 3 + [100, 100, 0]):
        assert MeshSwapper().swap(woman.image, points.astype(np.float32), worn, 1, 0) is None


def lit(share: float) -> np.ndarray:
    return np.full((200, 200, 3), round(200 * share), np.uint8)


POINTS = (topology().shape * 50 + [100, 100, 0]).astype(np.float32)


def level(swapper: MeshSwapper, image: np.ndarray, identity: MeshIdentity, at_ns: int, face_id: int = 1) -> float:
    """Mean brightness of what is drawn."""
    patch = swapper.swap(image, POINTS, identity, face_id, at_ns)
    assert patch is not None
    return float(patch.pixels[patch.alpha > 200].mean())


@pytest.mark.parametrize("fps", [15, 60])
def test_light_settles_at_the_same_pace_at_every_frame_rate(worn: MeshIdentity, fps: int) -> None:
    """A step of light within what is no cut; after a fifth of a second exp(-0.2 / 0.077) = 7 % of it is left."""
    swapper = MeshSwapper()
    start = level(swapper, lit(0.8), worn, 0)
    end = level(MeshSwapper(), lit(0.7), worn, 0)
    now = start
    for k in range(1, fps // 5 + 1):
        now = level(swapper, lit(0.7), worn, k * round(1e9 / fps))
    assert (now - end) / (start - end) == pytest.approx(0.074, abs=0.04)


def test_a_cut_and_a_gap_do_not_settle_but_start_anew(worn: MeshIdentity) -> None:
    fresh_dark, fresh_near = level(MeshSwapper(), lit(0.3), worn, 0), level(MeshSwapper(), lit(0.72), worn, 0)
    cut, gap = MeshSwapper(), MeshSwapper()
    level(cut, lit(0.8), worn, 0)
    assert level(cut, lit(0.3), worn, FRAME_NS) == pytest.approx(fresh_dark)
    level(gap, lit(0.8), worn, 0)
    assert level(gap, lit(0.72), worn, 2_000_000_000) == pytest.approx(fresh_near)


def test_a_jump_of_the_face_is_a_cut_though_the_light_is_alike(worn: MeshIdentity) -> None:
    swapper, fresh = MeshSwapper(), level(MeshSwapper(), lit(0.72), worn, 0)
    away = np.full((200, 600, 3), 160, np.uint8)
    swapper.swap(away, POINTS + np.float32([400, 0, 0]), worn, 1, 0)
    assert level(swapper, lit(0.72), worn, FRAME_NS) == pytest.approx(fresh)


def test_forgotten_faces_and_other_faces_have_no_past(worn: MeshIdentity) -> None:
    swapper, fresh = MeshSwapper(), level(MeshSwapper(), lit(0.72), worn, 0)
    level(swapper, lit(0.8), worn, 0)
    assert level(swapper, lit(0.72), worn, FRAME_NS, face_id=2) == pytest.approx(fresh)
    swapper.forget(1)
    assert level(swapper, lit(0.72), worn, 2 * FRAME_NS) == pytest.approx(fresh)


def test_no_photo_is_said_so() -> None:
    with pytest.raises(PhotoError, match="at least one photo"):
        MeshSwapper().prepare([])


def test_the_same_photo_twice_is_that_photo(woman: SourceFace) -> None:
    once, twice = MeshSwapper().prepare([woman]), MeshSwapper().prepare([woman, woman])
    difference = np.abs(once.textures[0].astype(int) - twice.textures[0])
    assert difference.max() <= 1  # rounding


def test_a_second_photo_shows_what_the_first_hides(woman: SourceFace) -> None:
    """The first photo ends at the nose; together with the whole one, more of the face is known."""
    points = woman.landmarks.points
    middle = int(points[1, 0])
    cut = SourceFace(np.ascontiguousarray(woman.image[:, :middle]), Landmarks(points, 1.0), "cut")
    alone = MeshSwapper().prepare([cut])
    both = MeshSwapper().prepare([cut, woman])
    assert both.weights.sum() > alone.weights.sum()


def test_a_black_and_white_photo_takes_the_targets_colours(woman: SourceFace) -> None:
    grey_image = cv2.cvtColor(cv2.cvtColor(woman.image, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    identity = MeshSwapper().prepare([SourceFace(grey_image, woman.landmarks, "grey")])
    assert identity.grey
    out = dress(MeshSwapper(), woman.image, woman.landmarks.points, identity)
    skin = skin_of(woman.landmarks.points, out.shape)
    np.testing.assert_allclose(out[skin].mean(0), woman.image[skin].mean(0), rtol=0.08)


@pytest.mark.parametrize("side", [-1, 1])
def test_what_is_seen_edge_on_fades_out(worn: MeshIdentity, side: int) -> None:
    """Sixty degrees: the near cheek is drawn, the far one is not."""
    points = (topology().shape @ turn(0, side * 1.05, 0) * 80 + [160, 120, 0]).astype(np.float32)
    patch = MeshSwapper().swap(np.full((240, 320, 3), 150, np.uint8), points, worn, 1, 0)
    assert patch is not None
    near = min((50, 280), key=lambda vertex: points[vertex, 2])
    x, y = points[near, :2].astype(int) - [patch.left, patch.top]
    assert patch.alpha[y, x] > 200
    facing = Facing(topology())
    shares = facing.share(facing.turn(points))
    far = 330 - near  # 50 and 280 are each other's mirror
    assert shares[near] == 1
    assert shares[far] < 0.1


def test_all_of_a_face_from_the_front_faces_the_viewer_and_none_of_its_back() -> None:
    mesh, facing = topology(), Facing(topology())
    inside = (mesh.from_oval > 0.2) & (np.abs(mesh.shape[:, 0]) < 0.7)
    assert facing.share(facing.turn(mesh.shape * 100))[inside].min() > 0.95
    assert facing.share(facing.turn((mesh.shape @ turn(0, np.pi, 0)).astype(np.float32) * 100))[inside].max() == 0


def test_warming_up_leaves_no_face_behind(worn: MeshIdentity) -> None:
    swapper = MeshSwapper()
    swapper.warm_up()
    assert level(swapper, lit(0.7), worn, 1, face_id=-1) == pytest.approx(level(MeshSwapper(), lit(0.7), worn, 1))


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.5])
def test_a_photo_of_any_size_is_drawn_where_its_face_is(portraits: Sequence[SourceFace], factor: float) -> None:
    """A portrait on itself: the picture may change its light but not its place (a quarter of a pixel was once lost in scaling)."""
    face = portraits[0]
    size = (round(face.image.shape[1] * factor), round(face.image.shape[0] * factor))
    scale = np.array([size[0] / face.image.shape[1], size[1] / face.image.shape[0]])
    points = face.landmarks.points.copy()
    points[:, :2] = (points[:, :2] + 0.5) * scale - 0.5
    photo = SourceFace(cv2.resize(face.image, size, interpolation=cv2.INTER_AREA), Landmarks(points, 1.0), "scaled")
    swapper = MeshSwapper()
    drawn = dress(swapper, face.image, face.landmarks.points, prepare([photo]))
    low, high = face.landmarks.points[:, :2].min(0).astype(int), face.landmarks.points[:, :2].max(0).astype(int)
    before, after = (
        cv2.cvtColor(picture[low[1] : high[1], low[0] : high[0]], cv2.COLOR_BGR2GRAY).astype(np.float32) for picture in (face.image, drawn)
    )
    (right, down), _ = cv2.phaseCorrelate(before, after, cv2.createHanningWindow(before.shape[::-1], cv2.CV_32F))
    assert np.hypot(right, down) < 0.2


def test_the_features_of_a_photo_are_drawn_where_the_target_has_its_own(portraits: Sequence[SourceFace]) -> None:
    """FaceMesh reads the drawn face within 2.5 % of the eyes' distance, on a picture that took no part in the registration."""
    woman, man = portraits
    mesh, swapper = FaceMesh(), MeshSwapper()
    turned = cv2.warpAffine(woman.image, cv2.getRotationMatrix2D((224, 120), 20, 1.6), (512, 512))
    (target,) = find_faces(turned, detectors["blazeface-full"](), mesh)
    roi = roi_from_points(target.points)

    def error(identity: MeshIdentity) -> float:
        read = mesh.locate(dress(swapper, turned, target.points, identity), roi)
        return landmark_error(read.points, mesh.locate(turned, roi).points)

    plain, registered = error(prepare([man])), error(swapper.prepare([man]))
    assert registered < 0.025
    assert registered < plain


def test_a_flat_picture_is_given_a_flat_face(woman: SourceFace) -> None:
    """Haze is light added everywhere: it takes contrast from the target's face, and the worn one must lose some too."""
    worn = MeshSwapper().prepare([woman])

    def kept(image: np.ndarray) -> float:
        light = Light(Nearness.of_mesh())
        return float(contrast(light.gains(image, woman.landmarks.points, worn, 1), light.kept(worn)).max())

    assert kept(woman.image) > 0.95  # her own picture needs none of that
    assert kept(np.clip(woman.image * 0.4 + 110, 0, 255).astype(np.uint8)) < 0.7


def test_a_smile_does_not_change_the_contrast_at_once(woman: SourceFace) -> None:
    """A picture of less contrast, and equally bright so that it is no cut, moves the share that is kept a little in one frame."""
    worn, points = MeshSwapper().prepare([woman]), woman.landmarks.points
    middle = woman.image[skin_of(points, woman.image.shape)].mean(0)
    softer = np.clip((woman.image - middle) * 0.4 + middle, 0, 255).astype(np.uint8)
    light = Light(Nearness.of_mesh())
    before = contrast(light.gains(woman.image, points, worn, 1), light.kept(worn)).max()
    soon = contrast(light.gains(softer, points, worn, 1 + FRAME_NS), light.kept(worn)).max()
    for number in range(2, 300):
        gain = light.gains(softer, points, worn, 1 + number * FRAME_NS)
    settled = contrast(gain, light.kept(worn)).max()
    assert settled < 0.8 * before
    assert before - soon < 0.1 * (before - settled)


def test_what_the_photo_shows_edge_on_is_not_worn() -> None:
    """A face from the front before a green wall, its outline found too wide: the wall is not worn along the cheeks."""
    points = face_at(256, 256, 150)
    image = np.full((512, 512, 3), (0, 255, 0), np.uint8)
    narrow = (points[regions.OVAL, :2] - 256) * [0.93, 1] + 256
    cv2.fillPoly(image, [np.round(narrow).astype(np.int32)], (110, 140, 190))
    texture = unwrap(SourceFace(image, Landmarks(points, 1.0), "drawn"))
    green = texture.colour[..., 1] > texture.colour[..., 2] + 30
    rows = np.arange(SIDE)[:, None] / SIDE
    side = green & (rows > 0.45) & (rows < 0.75) & (spread(np.ones(468), topology())[..., 0] > 0)
    assert side.sum() > 1000
    assert texture.opaque[side].mean() < 0.15


SKIN_BGR, LIP_BGR, WHITE = (110, 140, 190), (90, 80, 170), (235, 235, 235)


def drawn_face(patch: Sequence[int], patch_at: Sequence[int]) -> Texture:
    """A face of plain skin and plain lips, of which the triangles between vertices ``patch_at`` are white."""
    points, mesh = face_at(256, 256, 220), topology()
    image = np.full((512, 512, 3), SKIN_BGR, np.uint8)
    for triangle in mesh.triangles:
        within = [colour for colour, part in ((LIP_BGR, regions.LIPS), (tuple(patch), patch_at)) if set(triangle.tolist()) <= set(part)]
        if within:
            cv2.fillConvexPoly(image, np.round(points[triangle, :2]).astype(np.int32), within[-1])
    return unwrap(SourceFace(image, Landmarks(points, 1.0), "drawn"))


def texels(vertices: Sequence[int]) -> np.ndarray:
    return np.round(topology().uv[vertices] * SIDE - 0.5).astype(int)


def test_teeth_along_the_gap_become_lip() -> None:
    texture = drawn_face(WHITE, regions.LIPS_BESIDE_GAP)
    for x, y in texels([0, 17]):  # the lips' outer edges, in the middle
        step = -3 if y > texels([13])[0, 1] else 3  # towards the gap
        np.testing.assert_allclose(texture.colour[y + step, x], LIP_BGR, atol=25)
    for x, y in texels([12, 15]):  # between the two rings beside the gap
        assert texture.colour[y, x] @ LUMA < np.array(SKIN_BGR) @ LUMA
        assert texture.colour[y, x, 2] - texture.colour[y, x, 1] > 40  # 90 for lip, 50 for skin, 0 for teeth


def test_lips_without_teeth_and_the_skin_around_them_are_left_alone() -> None:
    texture, lips_as_painted = drawn_face(LIP_BGR, regions.LIPS), np.array(LIP_BGR)
    for x, y in texels([12, 15]):
        np.testing.assert_allclose(texture.colour[y, x], lips_as_painted, atol=12)
    for x, y in texels([164, 18]):  # above and below the mouth
        np.testing.assert_allclose(texture.colour[y, x], SKIN_BGR, atol=12)


def test_shine_is_dimmed_and_gets_the_skins_colour() -> None:
    cheek = [117, 118, 101, 50, 36, 205, 187, 123, 119, 100, 142, 203, 206, 207]
    texture = drawn_face(WHITE, cheek)
    x, y = texels([101])[0]
    there, skin = texture.colour[y, x], np.array(SKIN_BGR, np.float32)
    assert there @ LUMA < np.array(WHITE) @ LUMA * 0.9
    hue, of_skin = ((colour + LOG_OFFSET) / (colour @ LUMA + LOG_OFFSET) for colour in (there, skin))
    np.testing.assert_allclose(hue, of_skin, atol=0.06)
