"""Photos open by their content, upright and in their true colours, or say clearly why not."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from engines.errors import PhotoError
from engines.identity.photo import BACKDROP, LONG_SIDE_MAX, open_photo

ROOT = Path(__file__).resolve().parent.parent


def scene() -> Image.Image:
    """Four plain quarters: red, green; blue, white. 80 wide, 60 high."""
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[:30, :40], pixels[:30, 40:] = (200, 30, 30), (30, 180, 30)
    pixels[30:, :40], pixels[30:, 40:] = (30, 30, 190), (240, 240, 240)
    return Image.fromarray(pixels)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def opened(tmp_path: Path, data: bytes, name: str = "photo.bin") -> np.ndarray:
    path = tmp_path / name
    path.write_bytes(data)
    return open_photo(path)


def quarters(pixels: np.ndarray) -> list[list[int]]:
    """RGB at the middle of each quarter, row by row."""
    height, width = pixels.shape[:2]
    return [pixels[y, x, ::-1].tolist() for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]


COLOURS = [[200, 30, 30], [30, 180, 30], [30, 30, 190], [240, 240, 240]]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("JPEG", {"quality": 95}),
        ("JPEG", {"quality": 95, "progressive": True}),
        ("WEBP", {"lossless": True}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("BMP", {}),
        ("GIF", {}),
    ],
    ids=["png", "jpeg", "progressive", "webp", "tiff", "bmp", "gif"],
)
def test_opens_by_content_whatever_the_name(kind, options, tmp_path):
    pixels = opened(tmp_path, encoded(scene(), kind, **options), "naïve 顔 photo.xyz")
    assert pixels.shape == (60, 80, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    np.testing.assert_allclose(quarters(pixels), COLOURS, atol=4)


def test_heic_opens_where_its_plug_in_is(tmp_path):
    pytest.importorskip("pillow_heif").register_heif_opener()
    pixels = opened(tmp_path, encoded(scene(), "HEIF", quality=95), "photo.jpg")
    np.testing.assert_allclose(quarters(pixels), COLOURS, atol=8)


def test_heic_without_its_plug_in_says_what_to_install(tmp_path):
    """In a process of its own: what the plug-in once registered stays registered."""
    (tmp_path / "photo.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    program = (
        "import sys; sys.modules['pillow_heif'] = None\n"
        "from pathlib import Path; from engines.errors import PhotoError; from engines.identity.photo import open_photo\n"
        "try: open_photo(Path(sys.argv[1]))\n"
        "except PhotoError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "photo.heic")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "is a HEIC photo" in done.stdout
    assert "pip install pillow-heif" in done.stdout


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_obeyed(orientation, tmp_path):
    """Stored as a camera stores it: the inverse of what the tag tells a viewer to do."""
    inverse = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    stored = scene() if inverse is None else scene().transpose(inverse)
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = opened(tmp_path, encoded(stored, "JPEG", quality=95, exif=exif))
    assert pixels.shape == (60, 80, 3)
    np.testing.assert_allclose(quarters(pixels), COLOURS, atol=4)


def test_cmyk_is_not_inverted(tmp_path):
    pixels = opened(tmp_path, encoded(scene().convert("CMYK"), "JPEG", quality=95))
    np.testing.assert_allclose(quarters(pixels), COLOURS, atol=6)


def test_grey_becomes_three_equal_channels(tmp_path):
    pixels = opened(tmp_path, encoded(Image.new("L", (50, 40), 77), "PNG"))
    assert pixels.shape == (40, 50, 3)
    assert (pixels == 77).all()


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path):
    values = np.array([[0, 257 * 77], [257 * 128, 65535]], np.uint16).repeat(8, 0).repeat(8, 1)
    pixels = opened(tmp_path, encoded(Image.fromarray(values), "PNG"))
    assert quarters(pixels) == [[0] * 3, [77] * 3, [128] * 3, [255] * 3]


def test_palette_keeps_its_colours(tmp_path):
    palette = scene().quantize(4)
    np.testing.assert_allclose(quarters(opened(tmp_path, encoded(palette, "PNG"))), COLOURS, atol=4)


def test_what_is_transparent_does_not_show(tmp_path):
    """Invisible pixels hold pure green, as cutting tools leave them; half visible ones mix with the backdrop."""
    pixels = np.zeros((40, 40, 4), np.uint8)
    pixels[:] = (0, 255, 0, 0)
    pixels[20:, :20], pixels[20:, 20:] = (200, 30, 30, 255), (200, 30, 30, 128)
    found = quarters(opened(tmp_path, encoded(Image.fromarray(pixels), "PNG")))
    half = (np.array([200, 30, 30]) * 128 + np.array(BACKDROP) * 127) / 255
    np.testing.assert_allclose(found, [BACKDROP, BACKDROP, [200, 30, 30], half], atol=1)


def test_a_transparent_palette_entry_does_not_show(tmp_path):
    palette = scene().quantize(4)
    hidden = palette.getpixel((10, 10))
    found = quarters(opened(tmp_path, encoded(palette, "PNG", transparency=hidden)))
    np.testing.assert_allclose(found, [list(BACKDROP), *COLOURS[1:]], atol=4)


def test_a_colour_profile_is_applied(tmp_path):
    """sRGB with the names of its red and blue primaries exchanged: what is stored as red is meant as blue."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    swapped = profile.replace(b"rXYZ", b"____", 1).replace(b"bXYZ", b"rXYZ", 1).replace(b"____", b"bXYZ", 1)
    assert quarters(opened(tmp_path, encoded(scene(), "PNG", icc_profile=profile))) == COLOURS
    meant = [[30, 30, 200], [30, 180, 30], [190, 30, 30], [240, 240, 240]]
    np.testing.assert_allclose(quarters(opened(tmp_path, encoded(scene(), "PNG", icc_profile=swapped))), meant, atol=2)


@pytest.mark.parametrize("profile", [b"nonsense", b"\0" * 200], ids=["text", "zeros"])
def test_a_colour_profile_that_cannot_be_read_is_as_good_as_none(profile, tmp_path):
    pixels = opened(tmp_path, encoded(scene(), "PNG", icc_profile=profile))
    assert quarters(pixels) == COLOURS


@pytest.mark.parametrize(("width", "height"), [(6000, 500), (500, 6000), (LONG_SIDE_MAX + 1, 64)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_large_photos_are_reduced_and_keep_their_shape(kind, width, height, tmp_path):
    pixels = opened(tmp_path, encoded(scene().resize((width, height), Image.Resampling.NEAREST), kind))
    assert max(pixels.shape[:2]) == LONG_SIDE_MAX
    assert pixels.shape[1] / pixels.shape[0] == pytest.approx(width / height, rel=0.02)
    np.testing.assert_allclose(quarters(pixels), COLOURS, atol=6)


def claiming(width: int, height: int) -> bytes:
    """A PNG of 80x60 pixels whose header claims another size."""
    data = bytearray(encoded(scene(), "PNG"))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path):
    with pytest.raises(PhotoError, match="too many to open safely"):
        opened(tmp_path, claiming(30000, 30000))


def test_no_warnings_reach_the_terminal(tmp_path):
    """Pillow warns of pictures from 89 megapixels on; this one is refused for what is missing, not for its size."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PhotoError, match="damaged or cut short"):
            opened(tmp_path, claiming(11000, 9000))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"Dear diary, this is no picture.", "is not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not a picture"),
        (b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41", "is a video or sound file"),
        (b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x1f", "is a video or sound file"),
        (encoded(scene(), "JPEG")[:400], "damaged or cut short"),
        (encoded(scene(), "PNG")[:120], "damaged or cut short"),
    ],
    ids=["empty", "text", "postscript", "mp4", "matroska", "half a jpeg", "half a png"],
)
def test_what_cannot_be_used_is_told_in_one_sentence(data, says, tmp_path):
    with pytest.raises(PhotoError, match=says) as caught:
        opened(tmp_path, data, "mine.jpg")
    assert "mine.jpg" in str(caught.value)
    assert "give" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path):
    with pytest.raises(PhotoError, match="is a folder"):
        open_photo(tmp_path)
    with pytest.raises(PhotoError, match=r"absent\.jpg does not exist"):
        open_photo(tmp_path / "absent.jpg")


SAMPLES = {kind: encoded(scene(), kind) for kind in ("JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP")}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kind=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_damage_gives_a_picture_or_a_photo_error(kind, data, tmp_path):
    whole = SAMPLES[kind]
    damaged = bytearray(whole[: data.draw(st.integers(1, len(whole)), label="kept")])
    for at in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=5), label="changed"):
        damaged[at] ^= data.draw(st.integers(1, 255))
    try:
        pixels = opened(tmp_path, bytes(damaged))
    except PhotoError:
        return
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
