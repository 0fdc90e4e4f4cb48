"""`ffrt presets`: looks by name, as TOML files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts
from cyclopts import Parameter

from app import console
from app.camera_options import CameraOptions
from app.face_options import LookOptions, Whole
from app.parameters import Switch
from app.people_options import PeopleOptions

if TYPE_CHECKING:
    from app.presets import Preset

presets = cyclopts.App(name="presets", help="Keeps looks by name, to be used with `ffrt --preset NAME`.")

Many = Parameter(consume_multiple=True)

DEFAULT_CAMERA = CameraOptions()
NOBODY_IN_PARTICULAR = PeopleOptions()
DEFAULT_LOOK = LookOptions()


@presets.command(name="list")
def list_presets(*, json: Annotated[bool, Switch] = False) -> int:
    """Lists the presets by name.

    Parameters
    ----------
    json
        print JSON instead of lines.
    """
    from app.presets import Presets

    console.set_up_logging(False)
    names = Presets().names()
    console.print_json(names) if json else console.print_lines(names, "no preset is saved yet; `ffrt presets save NAME` saves one")
    return 0


@presets.command
def show(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Prints a preset as TOML.

    Parameters
    ----------
    name
        its name.
    json
        print JSON instead of TOML.
    """
    from app.presets import Presets

    console.set_up_logging(False)
    _print(Presets().load(name), json)
    return 0


@presets.command
def save(
    name: str,
    /,
    *,
    look: LookOptions = DEFAULT_LOOK,
    source: Annotated[tuple[str, ...], Many] = (),
    source_face: Whole | None = None,
    input: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    size: str | None = None,
    fps: float | None = None,
    fourcc: str | None = None,
    camera: CameraOptions = DEFAULT_CAMERA,
    people: PeopleOptions = NOBODY_IN_PARTICULAR,
    to: Annotated[tuple[str, ...], Many] = (),
    virtual_camera: str | None = None,
    record: Path | None = None,
    replace: Annotated[bool, Switch] = False,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Saves a look under NAME: what is not given is as by default. A face, an input and outputs are kept with it where they are given.

    Parameters
    ----------
    name
        what to call it.
    source
        photo(s) of the face to wear, or the name of a face of the gallery.
    source_face
        which face of the photo, counted from 1 by size.
    input
        as in `ffrt --input`.
    size
        WIDTHxHEIGHT asked of a camera; takes --input.
    fps
        frames per second asked of a camera; takes --input.
    fourcc
        pixel format asked of a camera; takes --input.
    to
        name(s) of saved addresses to stream to.
    virtual_camera
        a camera that other programs can choose; a device, or nothing for the first one free.
    record
        file to record to.
    replace
        a preset of that name is replaced.
    json
        print the preset as JSON.
    """
    from app.addresses import AddressBook
    from app.faces_cli import photos_of
    from app.live_options import input_settings, virtual_camera_setting
    from app.presets import OutputPreset, PeoplePreset, Preset, Presets, SourcePreset
    from app.settings import LookSettings, PeopleSettings, SourceSettings

    console.set_up_logging(False)
    for address in to:
        AddressBook().entry(address)  # a wrong name is said now
    worn = SourceSettings(photos=tuple(path.absolute() for path in photos_of(source)), face=source_face)
    chosen = people.settings(worn)
    gallery = None
    if source or chosen.sources:
        from app.gallery import Gallery

        gallery = Gallery()
    has_output = bool(to or record) or virtual_camera is not None
    preset = Preset(
        look=LookSettings(**look.settings()),
        source=SourcePreset.of(worn, gallery) if source else None,
        people=None if chosen == PeopleSettings() else PeoplePreset.of(chosen, gallery),
        input=None if input is None else input_settings(input, size, fps, fourcc, camera.settings()),
        output=OutputPreset(addresses=to, virtual_camera=virtual_camera_setting(virtual_camera), record=record and record.absolute())
        if has_output
        else None,
    )
    path = Presets().save(name, preset, replace=replace)
    _print(preset, True) if json else console.note(f"saved {path}")
    return 0


@presets.command(name="import")
def import_preset(
    file: Path, /, *, name: str | None = None, replace: Annotated[bool, Switch] = False, json: Annotated[bool, Switch] = False
) -> int:
    """Takes in a file that `export` wrote.

    Parameters
    ----------
    file
        the TOML file; it stays where it is.
    name
        what to call it; the file's name otherwise.
    replace
        a preset of that name is replaced.
    json
        print the name as JSON.
    """
    from app.presets import Presets

    console.set_up_logging(False)
    chosen = Presets().import_file(file, name, replace=replace)
    console.print_json({"name": chosen}) if json else console.note(f"imported {chosen}")
    return 0


@presets.command
def export(name: str, file: Path, /, *, replace: Annotated[bool, Switch] = False, json: Annotated[bool, Switch] = False) -> int:
    """Writes a preset to a file, to be passed on. Stream keys and this machine's folders are not in it: a face is
    named as in the gallery, a photo or a video by its name, to be put beside the file on the other machine.

    Parameters
    ----------
    name
        its name.
    file
        where to.
    replace
        a file of that name is replaced.
    json
        print the place as JSON.
    """
    from app.presets import Presets

    console.set_up_logging(False)
    Presets().export(name, file, replace=replace)
    console.print_json({"file": str(file)}) if json else console.note(f"wrote {file}")
    return 0


@presets.command
def remove(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Deletes a preset.

    Parameters
    ----------
    name
        its name.
    json
        print what was removed as JSON.
    """
    from app.presets import Presets

    console.set_up_logging(False)
    Presets().remove(name)
    console.print_json({"name": name}) if json else console.note(f"removed {name}")
    return 0


def _print(preset: Preset, as_json: bool) -> None:
    facts: dict[str, Any] = preset.model_dump(mode="json", exclude_none=True)
    console.print_json(facts) if as_json else console.print_text(preset.to_toml())
