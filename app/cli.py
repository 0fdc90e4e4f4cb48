"""`ffrt`: opens the window; `--headless` goes live without one. The sub-commands that keep something
(faces, presets, addresses, models, engines) have files of their own.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import Parameter
from pydantic import ValidationError

from app import console, told
from app.addresses_cli import addresses
from app.bench_cli import bench
from app.camera_options import CameraOptions
from app.ctl_cli import ctl
from app.engines_cli import engines
from app.errors import AppError, UsageError
from app.face_options import FaceOptions, LookOptions, Whole
from app.faces_cli import faces, photos_of
from app.gui import Opening
from app.live_options import CONTROL_PORT, FIRST_FREE, asks_for_nothing, input_settings, streams_of, usage, virtual_camera_setting
from app.models_cli import models
from app.parameters import Switch
from app.people_options import PeopleOptions
from app.preset_options import fill_from_preset
from app.presets_cli import presets
from app.settings import (
    EncoderName,
    LookSettings,
    OutputSettings,
    RunSettings,
    Settings,
    SourceSettings,
    parse_bitrate,
)
from engines.device.kinds import split_names
from engines.errors import EngineError
from rt.errors import RtError

app = cyclopts.App(
    name="ffrt",
    help="Wears a photo's face in live video.",
    version=lambda: importlib.metadata.version("ffrt"),
    version_flags=["--version"],
    default_parameter=Parameter(negative=()),  # no --no-this and --empty-that
    config=fill_from_preset,
)
app.command(bench)
app.command(models)
app.command(engines)
app.command(faces)
app.command(presets)
app.command(addresses)
app.command(ctl)

Many = Parameter(consume_multiple=True)

DEFAULT_CAMERA = CameraOptions()
DEFAULT_FACE = FaceOptions()
DEFAULT_LOOK = LookOptions()
NOBODY_IN_PARTICULAR = PeopleOptions()


@app.default
def live(
    *,
    headless: Annotated[bool, Switch] = False,
    preset: str | None = None,
    source: Annotated[tuple[str, ...], Many] = (),
    source_face: Whole | None = None,
    input: Annotated[str, Parameter(allow_leading_hyphen=True)] = "synthetic:",
    size: str | None = None,
    fps: float | None = None,
    fourcc: str | None = None,
    loop: Annotated[bool, Switch] = False,
    timecode: Annotated[bool, Switch] = False,
    camera: CameraOptions = DEFAULT_CAMERA,
    rtmp: tuple[str, ...] = (),
    stream: tuple[str, ...] = (),
    to: Annotated[tuple[str, ...], Many] = (),
    virtual_camera: str | None = None,
    record: Path | None = None,
    overwrite: Annotated[bool, Switch] = False,
    null: Annotated[bool, Switch] = False,
    bitrate: str | None = None,
    encoder: EncoderName = "auto",
    look: LookOptions = DEFAULT_LOOK,
    people: PeopleOptions = NOBODY_IN_PARTICULAR,
    seconds: float | None = None,
    device: str = "host",
    gpu_memory: Whole = 0,
    build_engines: Annotated[bool, Switch] = False,
    budget_ms: float = 100.0,
    control: int | None = None,
    report: Path | None = None,
    json: Annotated[bool, Switch] = False,
    minimised: Annotated[bool, Switch] = False,
    live: Annotated[bool, Switch] = False,
    as_left: Annotated[bool, Parameter(negative="", show=False)] = False,
    debug: Annotated[bool, Switch] = False,
    verbose: Annotated[bool, Switch] = False,
) -> int:
    """Opens the window, or with --headless goes live at once: the face of SOURCE on the person in INPUT, to every output that is named.

    Parameters
    ----------
    headless
        run without a window.
    preset
        name of a preset (`ffrt presets list`); options that are given beside it win.
    source
        photo(s) of the face to wear, or the name of a face of the gallery (`ffrt faces list`); several photos of one person are combined.
        Without one the picture passes unchanged.
    source_face
        which face of the photo, counted from 1 by size; the largest is taken otherwise.
    input
        a camera (`0`, its name, `/dev/video0`), a file or address (rtmp, rtsp, http), `synthetic:` or `-` for MPEG-TS on stdin.
    size
        WIDTHxHEIGHT asked of a camera.
    fps
        frames per second asked of a camera.
    fourcc
        pixel format asked of a camera, as in MJPG.
    loop
        start a file again at its end.
    timecode
        paint the capture time into the picture.
    rtmp
        address to stream to, as in rtmp://server/app/key; may be given several times.
    stream
        any other address to stream to (rtmps, srt, udp); may be given several times.
    to
        name(s) of saved addresses to stream to (`ffrt addresses list`).
    virtual_camera
        a camera that OBS, Zoom and browsers can choose; a device, or nothing for the first one free.
    record
        file to record to (.mp4, .mkv, .mov, .ts); playable even if the program is killed.
    overwrite
        replace the file to record to if it exists.
    null
        an output that only measures.
    bitrate
        of streams, as in 2500k or 4M; chosen by size and rate otherwise.
    encoder
        of streams and recordings; auto takes an NVIDIA GPU's (h264_nvenc) where it opens, else the processor's (libx264).
    seconds
        end after so long.
    device
        what works on pictures: host (the processor), cuda:0 (an NVIDIA GPU runs the networks), or several as in cuda:0,cuda:1.
    gpu_memory
        MB that each lane may take of its GPU: networks, and pictures what these leave. Without it, or with 0, all there is. What does not
        fit is given up: the enhancer, then swap size, then faces.
    build_engines
        build the engines that a GPU here lacks for the models in use, in the background, and switch over when they are proven.
    budget_ms
        how old pictures may be (95th percentile) before detection, enhancer, swap size and faces are cut, in this order; 0 cuts nothing.
    control
        lets `ffrt ctl`, scripts and a Stream Deck control it, from this machine alone; a port, 0 for any, or nothing for 17380.
    report
        file for the report (JSON).
    json
        print the report as JSON instead of a table, and what happens to input and outputs as lines of JSON on stderr.
    minimised
        open the window minimised, into the system's tray where there is one.
    live
        have the window go live at once.
    as_left
        open the window as it was left; meant where nothing about the picture is asked for.
    debug
        measure for how long the window could not answer; said in the log, at the end and in the report.
    verbose
        more log lines.
    """
    console.set_up_logging(verbose or debug, events=headless and json)
    worn = SourceSettings(photos=photos_of(source), face=source_face)
    settings = Settings(
        source=worn,
        people=people.settings(worn),
        input=input_settings(input, size, fps, fourcc, camera.settings(), loop, timecode),
        look=LookSettings(**look.settings()),
        output=OutputSettings(
            streams=(*rtmp, *stream, *streams_of(to)),
            virtual_camera=virtual_camera_setting(virtual_camera),
            record=record,
            overwrite=overwrite,
            null=null,
            bitrate_bps=None if bitrate is None else usage(parse_bitrate, bitrate),
            encoder=encoder,
        ),
        run=RunSettings(
            seconds=seconds,
            report=report,
            devices=usage(split_names, device),
            gpu_memory_mb=gpu_memory,
            build_engines=build_engines,
            budget_ms=budget_ms,
        ),
    )
    if not headless:
        return _open_window(settings, Opening(restore=as_left, minimised=minimised, live=live, control=control, debug=debug))
    if not settings.output:
        raise UsageError("no output was given; add --virtual-camera, --rtmp URL, --to NAME, --record FILE or --null")
    return told.run(settings, json) if control is None else told.run_controlled(settings, control, json)


@app.command
def demo(
    *,
    out: Path = Path("demo"),
    seconds: float = 10.0,
    source: Annotated[tuple[Path, ...], Many] = (),
    json: Annotated[bool, Switch] = False,
) -> int:
    """The main job without a camera: an animated portrait wears a photo's face; leaves a recording, a contact sheet and a report.

    Parameters
    ----------
    out
        folder for out.mp4, contact_sheet.png and report.json.
    seconds
        how long.
    source
        photo(s) to wear instead of the one that comes with the program.
    json
        print the report as JSON instead of a table.
    """
    from app.demo import run_demo

    console.set_up_logging(False)
    report, files = run_demo(out, seconds, source)
    status = told.tell(report, json)
    for file in files:
        console.note(f"wrote {file}")
    return status


@app.command
def doctor(*, text: Annotated[bool, Switch] = False, json: Annotated[bool, Switch] = False) -> int:
    """Says what this machine has and lacks, and how to mend it.

    Parameters
    ----------
    text
        print it to be passed on: without names of persons, files, devices and addresses.
    json
        print the result as JSON.
    """
    from app.doctor import examine, to_dict

    console.set_up_logging(False)
    if text and json:
        raise UsageError("--text and --json were given; --text is for people and --json for programs, give one of them")
    findings = examine()
    if text:
        from app.diagnostics import examined

        console.print_text(examined(findings))
    else:
        console.print_json(to_dict(findings)) if json else console.print_findings(findings)
    return 0


@app.command
def cameras(*, json: Annotated[bool, Switch] = False) -> int:
    """Lists the cameras of this machine with their modes.

    Parameters
    ----------
    json
        print the result as JSON.
    """
    from dataclasses import asdict

    from rt.capture.camera import list_cameras

    console.set_up_logging(False)
    found = list_cameras()
    console.print_json([asdict(camera) for camera in found]) if json else console.print_cameras(found)
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """The `ffrt` command. Exit status: 0 well, 1 something could not be done, 2 wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(_guarded(lambda: app(_checked(words), result_action="return_value")))


def _guarded(command: Callable[[], Any]) -> int:
    try:
        return int(command() or 0)
    except UsageError as error:
        console.fail(error)
        return 2
    except ValidationError as error:
        for problem in error.errors():
            console.fail(f"{_option_of(problem['loc'])}: {problem['msg']} ({problem['input']!r} was given)")
        return 2
    except (AppError, RtError, EngineError) as error:
        console.fail(error)
        return 1


STAND_ALONE = {"--virtual-camera": FIRST_FREE, "--control": str(CONTROL_PORT)}
"""Option → what it means without a value."""

OPTIONS = {
    "photos": "source",
    "face": "source-face",
    "spec": "input",
    "width": "size",
    "height": "size",
    "masks": "mask",
    "blending": "blend",
    "exposure_ms": "exposure",
    "reconnect_s": "reconnect",
    "bitrate_bps": "bitrate",
    "slow_ms": "slow",
    "devices": "device",
    "gpu_memory_mb": "gpu-memory",
    "streams": "stream",
}
"""Field of the settings → the option that sets it, where the two are not called the same."""


def _option_of(place: Sequence[int | str]) -> str:
    field = next((str(name) for name in reversed(place) if not isinstance(name, int)), "settings")
    return "--" + OPTIONS.get(field, field.replace("_", "-"))


def _checked(arguments: Sequence[str]) -> list[str]:
    """`--source $PHOTO` with nothing in PHOTO must not show the face that is filmed. Raises ``UsageError``."""
    for word, following in itertools.zip_longest(arguments, arguments[1:], fillvalue="-"):
        if word == "--source" and following.startswith("-"):
            raise UsageError("--source was given without a photo; name at least one, or leave --source out to swap nothing")
    return [*_with_defaults(arguments), *(["--as-left"] if asks_for_nothing(arguments) else [])]


def _with_defaults(arguments: Sequence[str]) -> list[str]:
    """`--virtual-camera` and `--control` may stand alone: the first free device and the usual port are meant."""
    filled: list[str] = []
    for word, following in itertools.zip_longest(arguments, arguments[1:], fillvalue="-"):
        filled.append(word)
        if word in STAND_ALONE and following.startswith("-"):
            filled.append(STAND_ALONE[word])
    return filled


def _open_window(settings: Settings, opening: Opening) -> int:
    """One a user: a second says so, and brings the first to the front where it can."""
    from app.gui import open_window
    from app.instance import Instance, bring_forward

    with Instance() as instance:
        other = instance.claim()
        if other is not None:
            raise AppError(bring_forward(other, instance))
        return open_window(settings, dataclasses.replace(opening, announce=instance.announce, is_wanted=instance.take_wish))
