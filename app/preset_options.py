"""`--preset NAME` on the command line: what the preset holds stands in for the options that were not given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cyclopts

from app.errors import PresetError
from app.face_options import NO_MASK
from app.live_options import FIRST_FREE
from app.settings import AUTOMATIC, InputSettings, LookSettings

if TYPE_CHECKING:
    from cyclopts.argument import ArgumentCollection

    from app.presets import Preset, SourcePreset

OPTION = "--preset"

LOOK_OPTIONS = {"masks": "mask", "blending": "blend"}
"""Field of the look → its option, where the two are not called the same."""


def fill_from_preset(app: cyclopts.App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """A cyclopts config: runs after the command line is read, before anything is called. Raises ``PresetError`` or ``StoreError``."""
    asked = arguments.get(OPTION, None)
    if asked is None or not asked.tokens:
        return
    from app.presets import Presets

    name = asked.tokens[-1].value
    preset = Presets().load(name)
    given = arguments.get("--source", None)
    if given is not None and given.tokens:
        preset = preset.model_copy(update={"source": None})  # it wins, and the preset's own face need not be here
    options = options_of(preset, name)
    cyclopts.config.Dict(options, source=f"preset {name!r}", use_commands_as_keys=False)(app, commands, arguments)


def options_of(preset: Preset, name: str) -> dict[str, Any]:
    """Option without its dashes → value, as the configurations of cyclopts have them. ``name`` is for errors."""
    options = _look(preset.look)
    if preset.source is not None:
        options |= _source(preset.source)
    if preset.people is not None:
        options["people-of"] = name
    if preset.input is not None:
        options |= _input(preset.input, name)
    if preset.output is not None:
        output = preset.output
        options |= {"to": list(output.addresses), "overwrite": output.overwrite, "null": output.null}
        device = FIRST_FREE if output.virtual_camera == "" else output.virtual_camera
        options |= {"virtual-camera": device, "record": output.record, "bitrate": output.bitrate_bps, "encoder": output.encoder}
    return {option: _written(value) for option, value in options.items() if value is not None}


def _look(look: LookSettings) -> dict[str, Any]:
    options = {LOOK_OPTIONS.get(field, field.replace("_", "-")): value for field, value in look.model_dump(mode="json").items()}
    return {**options, "mask": options["mask"] or [NO_MASK]}


def _source(kept: SourcePreset) -> dict[str, Any]:
    """Raises ``PresetError`` for a face that is not here. The gallery looks at photos, and is loaded where it is asked alone."""
    from app.gallery import Gallery

    source = kept.worn(Gallery())
    return {"source": [str(photo) for photo in source.photos], "source-face": source.face}


def _input(wanted: InputSettings, name: str) -> dict[str, Any]:
    if (wanted.width is None) != (wanted.height is None):
        raise PresetError(f"the preset {name!r} gives a width or a height alone; give both, or none")
    size = None if wanted.width is None else f"{wanted.width}x{wanted.height}"
    options = {"input": wanted.spec, "size": size, "fps": wanted.fps, "fourcc": wanted.fourcc}
    exposure = None if wanted.exposure_ms is None else wanted.exposure_ms or AUTOMATIC
    framed = {"mirror": wanted.mirror, "rotate": wanted.rotate, "crop": ",".join(map(str, wanted.crop)), "crop-fit": wanted.crop_fit}
    return {**options, **framed, "exposure": exposure, "reconnect": wanted.reconnect_s, "loop": wanted.loop, "timecode": wanted.timecode}


def _written(value: Any) -> Any:
    """As on the command line: it reads numbers from words."""
    return value if isinstance(value, bool | list) else str(value)
