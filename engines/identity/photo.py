"""Opens a photo by what is in it, not by what it is called."""

from __future__ import annotations

import importlib
import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from engines.errors import PhotoError

LONG_SIDE_MAX = 2048
"""Pixels; a larger photo is reduced. A face that fills it still has four times the texels the swapper keeps."""

FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "AVIF", "BMP", "TIFF", "GIF", "HEIF")
"""Pillow's names of what may be opened. It knows more, some of which start other programs (EPS) or are no photos."""

PLUGINS = ("Jpeg", "Mpo", "Png", "WebP", "Avif", "Bmp", "Tiff", "Gif")
"""What reads them: modules of Pillow's, but for HEIF."""

ACCEPTED = "JPEG, PNG, WebP, AVIF, BMP, TIFF or GIF, and HEIC where pillow-heif is installed"

VIDEO_STARTS = (b"\x1aE\xdf\xa3", b"OggS", b"FLV", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3")
"""First bytes of Matroska and WebM, Ogg, Flash and MPEG videos. MP4 and MOV have `ftyp` in their second four bytes."""

PIXELS_MAX = 2 * int(Image.MAX_IMAGE_PIXELS or 0)
"""Where Pillow refuses: a small file may claim any size."""

BACKDROP = (128, 128, 128)
"""What shows through transparent pixels: their own colour is nobody's intention."""


def open_photo(path: Path) -> np.ndarray:
    """uint8 [H, W, 3] BGR, upright, sRGB, at most ``LONG_SIDE_MAX`` pixels long; of an animation the first picture.

    Raises ``PhotoError`` with one clear sentence.
    """
    data = _read(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # of damaged EXIF data, and of size before it is refused
            return _decode(data)
    except UnidentifiedImageError:
        raise PhotoError(_unknown(path, data)) from None
    except Image.DecompressionBombError:
        raise PhotoError(f"{path} has more than {PIXELS_MAX / 1e6:.0f} megapixels, too many to open safely; give a smaller photo") from None
    except (OSError, SyntaxError, ValueError, EOFError, RuntimeError) as error:  # what Pillow's decoders raise
        raise PhotoError(f"{path} is damaged or cut short ({error}); give the original file") from error


def _decode(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data), formats=_known_formats(data)) as image:
        image.draft("RGB", (LONG_SIDE_MAX, LONG_SIDE_MAX))  # a JPEG decodes straight to a smaller size
        image.load()
        return _to_bgr(image)


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise PhotoError(f"{path} is a folder; give the photo itself ({ACCEPTED})")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise PhotoError(f"the photo {path} does not exist; check the path ({ACCEPTED})") from None
    except OSError as error:
        raise PhotoError(f"the photo {path} cannot be read: {error.strerror}; check its permissions") from error
    if not data:
        raise PhotoError(f"the photo {path} is empty (0 bytes); give the original file ({ACCEPTED})")
    return data


def _known_formats(data: bytes) -> list[str]:
    """Pillow knows a format once its plugin is imported: what ``data`` may need, where ``Image.init`` would import all forty. A start
    waits for them."""
    for plugin in PLUGINS:
        importlib.import_module(f"PIL.{plugin}ImagePlugin")
    if _is_boxed(data):
        try:
            import pillow_heif
        except ImportError:
            pass
        else:
            pillow_heif.register_heif_opener()
    return [name for name in FORMATS if name in Image.OPEN]


def _is_boxed(data: bytes) -> bool:
    """HEIF, AVIF, MP4 and MOV begin with a box of their type (ISO 14496-12)."""
    return data[4:8] == b"ftyp"


def _unknown(path: Path, data: bytes) -> str:
    if _is_boxed(data) and data[8:12] in (b"heic", b"heix", b"mif1", b"msf1", b"hevc"):
        return f"{path} is a HEIC photo; install its plug-in with `pip install pillow-heif`, or save it as JPEG"
    if _is_boxed(data) or data.startswith(VIDEO_STARTS):
        return f"{path} is a video or sound file; give a photo ({ACCEPTED})"
    return f"{path} is not a picture; give {ACCEPTED}"


def _to_bgr(image: Image.Image) -> np.ndarray:
    image = _sixteen_to_eight(ImageOps.exif_transpose(image))
    if "A" in image.getbands() or "transparency" in image.info:
        image = _opaque(image)
    elif image.mode not in ("RGB", "CMYK", "L"):
        image = image.convert("RGB")
    image.thumbnail((LONG_SIDE_MAX, LONG_SIDE_MAX), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return np.ascontiguousarray(np.asarray(_to_srgb(image))[..., ::-1])


def _opaque(image: Image.Image) -> Image.Image:
    backdrop = Image.new("RGBA", image.size, (*BACKDROP, 255))
    opaque = Image.alpha_composite(backdrop, image.convert("RGBA")).convert("RGB")
    opaque.info["icc_profile"] = image.info.get("icc_profile")
    return opaque


def _sixteen_to_eight(image: Image.Image) -> Image.Image:
    """Pillow clips 16-bit grey to 8 bits when it converts; scaling is what was meant."""
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.float32)
    return Image.fromarray(np.clip(values / 257, 0, 255).astype(np.uint8))


def _to_srgb(image: Image.Image) -> Image.Image:
    """RGB by the embedded colour profile; one that cannot be read, or is of other colours, is as good as none."""
    profile = image.info.get("icc_profile")
    if not profile:
        return image.convert("RGB")
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError):
        return image.convert("RGB")
    return converted or image.convert("RGB")
