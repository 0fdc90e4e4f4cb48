"""Opens a photo by what is in it, not by what it is called."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from engines.errors import PhotoError

LONG_SIDE_MAX = 2048
"""Pixels; a larger photo is reduced. A face that fills it still has four times the texels the swapper keeps."""

PIXELS_MAX = 200_000_000
"""What would need more than about 600 MB is refused."""

ACCEPTED = "JPEG, PNG, WebP, BMP, TIFF or GIF, and HEIC where pillow-heif is installed"

BACKDROP = (128, 128, 128)
"""What shows through transparent pixels: their own colour is nobody's intention."""


def open_photo(path: Path) -> np.ndarray:
    """uint8 [H, W, 3] BGR, upright, at most ``LONG_SIDE_MAX`` pixels long. Raises ``PhotoError`` with one clear sentence."""
    data = _read(path)
    _register_heif()
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > PIXELS_MAX:
                raise PhotoError(f"{path} has {image.width}x{image.height} pixels; give a photo of at most {PIXELS_MAX // 10**6} megapixels")
            image.draft("RGB", (LONG_SIDE_MAX, LONG_SIDE_MAX))  # a JPEG decodes straight to a smaller size
            image.load()
            return _to_bgr(image)
    except UnidentifiedImageError:
        raise PhotoError(_unknown(path, data)) from None
    except Image.DecompressionBombError as error:
        raise PhotoError(f"{path} is too large to open safely ({error}); give a smaller photo") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise PhotoError(f"{path} is damaged or cut short ({error}); give the original file") from error


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


def _register_heif() -> None:
    try:
        import pillow_heif
    except ImportError:
        return
    pillow_heif.register_heif_opener()


def _unknown(path: Path, data: bytes) -> str:
    if data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"mif1", b"msf1", b"hevc"):
        return f"{path} is a HEIC photo; install its plug-in with `pip install 'ffrt[heic]'`, or save it as JPEG"
    return f"{path} is not a picture; give {ACCEPTED}"


def _to_bgr(image: Image.Image) -> np.ndarray:
    upright = ImageOps.exif_transpose(image)
    upright = _sixteen_to_eight(upright)
    if "A" in upright.getbands() or "transparency" in upright.info:
        upright = Image.alpha_composite(Image.new("RGBA", upright.size, (*BACKDROP, 255)), upright.convert("RGBA"))
    upright = _to_srgb(upright).convert("RGB")
    upright.thumbnail((LONG_SIDE_MAX, LONG_SIDE_MAX), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return np.ascontiguousarray(np.asarray(upright)[..., ::-1])


def _sixteen_to_eight(image: Image.Image) -> Image.Image:
    """Pillow clips 16-bit grey to 8 bits when it converts; scaling is what was meant."""
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.float32)
    return Image.fromarray(np.clip(values / 257, 0, 255).astype(np.uint8))


def _to_srgb(image: Image.Image) -> Image.Image:
    """Applies an embedded colour profile; a profile that cannot be read is as good as none."""
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in ("RGB", "CMYK", "L"):
        return image
    try:
        converted = ImageCms.profileToProfile(
            image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB"), outputMode="RGB"
        )
    except ImageCms.PyCMSError:
        return image
    return converted or image
