"""The main job on the embedded default, without a camera: an animated portrait wears a photo's face."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import cv2

from app.errors import AppError
from app.run import run_session
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, RunSettings, Settings, SourceSettings
from app.sheet import contact_sheet
from app.witness import Snapshots
from engines.identity.photo import open_photo

DEMO_PHOTO = Path(str(files("assets") / "portraits" / "hopper.jpg"))
"""Grace Hopper; public domain, see assets/portraits/README.md."""

INSTANTS = 5
"""Columns of the contact sheet."""


def run_demo(folder: Path, seconds: float, photos: Sequence[Path]) -> tuple[dict[str, Any], list[Path]]:
    """Runs the line at camera pace. Returns the report and the files that were written."""
    _make_folder(folder)
    recording, sheet, report_file = (folder / name for name in ("out.mp4", "contact_sheet.png", "report.json"))
    settings = Settings(
        source=SourceSettings(photos=tuple(photos) or (DEMO_PHOTO,)),
        input=InputSettings(spec="synthetic:size=1280x720,fps=30", timecode=True),
        output=OutputSettings(record=recording, overwrite=True, null=True),
        run=RunSettings(seconds=seconds, report=report_file),
    )
    witness = Snapshots([seconds * (k + 0.5) / INSTANTS for k in range(INSTANTS)])
    report = run_session(LiveSession(settings, witness=witness))
    pairs = [(m.before, m.after, f"{m.seconds:.1f} s") for m in witness.moments if m.after is not None]
    if pairs:
        _write_picture(sheet, contact_sheet(pairs, open_photo(settings.source.photos[0])))
    return report, [file for file in (recording, sheet, report_file) if file.exists()]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AppError(f"the folder {folder} cannot be made: {error.strerror}; give --out a folder that can be written") from error


def _write_picture(file: Path, picture: Any) -> None:
    encoded = cv2.imencode(file.suffix, picture)[1]
    file.write_bytes(encoded.tobytes())  # cv2.imwrite does not open every name on every system
