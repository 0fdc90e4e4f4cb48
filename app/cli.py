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

from app import console
from app.addresses_cli import addresses
from app.camera_options import CameraOptions
from app.ctl_cli import ctl
from app.engines_cli import engines
from app.errors import AppError, UsageError
from app.face_options import FaceOptions, LookOptions, Whole
from app.faces_cli import faces, photos_of
from app.gui import Opening
from app.live_options import CONTROL_PORT, FIRST_FREE, asks_for_nothing, input_settings, streams_of, usage, virtual_camera_setting
from app.loading import loading
from app.models_cli import models
from app.people_options import PeopleOptions
from app.preset_options import fill_from_preset
from app.presets_cli import presets
from app.settings import (
    InputSettings,
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
bench = cyclopts.App(name="bench", help="Measures the line, and judges a swapper.")
app.command(bench)
app.command(models)
app.command(engines)
app.command(faces)
app.command(presets)
app.command(addresses)
app.command(ctl)

Many = Parameter(consume_multiple=True)
Switch = Parameter(negative="")

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
    look: LookOptions = DEFAULT_LOOK,
    people: PeopleOptions = NOBODY_IN_PARTICULAR,
    seconds: float | None = None,
    device: str = "host",
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
    seconds
        end after so long.
    device
        what works on pictures: host (the processor), cuda:0 (an NVIDIA GPU runs the networks), or several as in cuda:0,cuda:1.
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
        ),
        run=RunSettings(
            seconds=seconds, report=report, devices=usage(split_names, device), build_engines=build_engines, budget_ms=budget_ms
        ),
    )
    if not headless:
        return _open_window(settings, Opening(restore=as_left, minimised=minimised, live=live, control=control, debug=debug))
    if not settings.output:
        raise UsageError("no output was given; add --virtual-camera, --rtmp URL, --to NAME, --record FILE or --null")
    return _run(settings, json) if control is None else _run_controlled(settings, control, json)


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
    _print(report, json)
    for file in files:
        console.note(f"wrote {file}")
    return _status(report)


@bench.command(name="live")
def bench_live(
    *,
    input: Annotated[str, Parameter(allow_leading_hyphen=True)] = "synthetic:size=1280x720,fps=30",
    source: Annotated[tuple[Path, ...], Many] = (),
    seconds: float = 10.0,
    report: Path | None = None,
    slow: tuple[str, ...] = (),
    loop: Annotated[bool, Switch] = False,
    face: FaceOptions = DEFAULT_FACE,
    max_faces: int = 1,
    device: str = "host",
    budget_ms: float = 100.0,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Runs the real line into a measuring output; the age is read back from a time code in the pixels.

    Parameters
    ----------
    input
        as in `ffrt --input`.
    source
        photo(s) to wear; the one that comes with the program otherwise.
    seconds
        how long.
    report
        file for the report (JSON).
    slow
        STAGE:MS makes a stage take longer; STAGE is track, swap, enhance or hide. May be given several times.
    loop
        start a file again at its end.
    max_faces
        how many faces are swapped.
    device
        as in `ffrt --device`.
    budget_ms
        as in `ffrt --budget-ms`.
    json
        print the report as JSON instead of a table.
    """
    from app.demo import DEMO_PHOTO

    console.set_up_logging(False)
    settings = Settings(
        source=SourceSettings(photos=source or (DEMO_PHOTO,)),
        input=InputSettings(spec=input, timecode=True, loop=loop),
        look=LookSettings(**face.settings(), max_faces=max_faces),
        output=OutputSettings(null=True),
        run=RunSettings(
            seconds=seconds, report=report, devices=usage(split_names, device), slow_ms=dict(map(_slow, slow)), budget_ms=budget_ms
        ),
    )
    return _run(settings, json)


@bench.command(name="stream")
def bench_stream(
    *,
    rtmp: str,
    input: Annotated[str, Parameter(allow_leading_hyphen=True)] = "synthetic:size=1280x720,fps=30",
    source: Annotated[tuple[Path, ...], Many] = (),
    seconds: float = 20.0,
    bitrate: str | None = None,
    report: Path | None = None,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Streams to a server and plays the stream back in another process; the age is read from the decoded pixels.

    Parameters
    ----------
    rtmp
        address of a server that also plays, as in rtmp://127.0.0.1/live/test.
    input
        as in `ffrt --input`.
    source
        photo(s) to wear; the one that comes with the program otherwise.
    seconds
        how long the player looks.
    bitrate
        as in 2500k or 4M; chosen by size and rate otherwise.
    report
        file for the report (JSON).
    json
        print the report as JSON instead of a table.
    """
    from app.bench.stream import JOIN_S, run_stream_bench
    from app.demo import DEMO_PHOTO

    console.set_up_logging(False)
    settings = Settings(
        source=SourceSettings(photos=source or (DEMO_PHOTO,)),
        input=InputSettings(spec=input, timecode=True),
        output=OutputSettings(streams=(rtmp,), bitrate_bps=None if bitrate is None else usage(parse_bitrate, bitrate)),
        run=RunSettings(seconds=seconds + JOIN_S),
    )
    result = run_stream_bench(settings, seconds, report)
    _print(result, json)
    return _status(result)


@bench.command(name="quality")
def bench_quality(
    *,
    clips: Path,
    sources: Path,
    report: Path | None = None,
    sheets: Path | None = None,
    face: FaceOptions = DEFAULT_FACE,
    max_pairs: int | None = None,
    frames: int = 200,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Judges a swapper by an independent recogniser, on every pair of a source photo and a clip.

    Parameters
    ----------
    clips
        folder of videos with one face.
    sources
        folder of photos.
    report
        file for the report (JSON).
    sheets
        folder for a contact sheet a pair.
    max_pairs
        look at no more pairs than this.
    frames
        look at so many frames of each clip.
    json
        print the report as JSON instead of a table.
    """
    from app.bench.quality import QualityOptions, run_quality
    from app.session import limit_threads

    console.set_up_logging(False)
    limit_threads()
    if frames < 1:
        raise UsageError(f"--frames {frames} was given; give 1 or more")
    options = QualityOptions(look=LookSettings(**face.settings()), max_pairs=max_pairs, frames_per_clip=frames, sheets_dir=sheets)
    with console.progress("bench quality") as progress:
        result = run_quality(clips, sources, report, progress, options).to_dict()
    console.print_json(result) if json else console.print_quality(result)
    return 0


@bench.command(name="start")
def bench_start(
    *,
    runs: int = 5,
    source: Path | None = None,
    face: FaceOptions = DEFAULT_FACE,
    report: Path | None = None,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Times the way from the start of the program to the first picture, in fresh processes.

    Parameters
    ----------
    runs
        how many; the median and the longest are shown.
    source
        photo to wear; the one that comes with the program otherwise.
    report
        file for the report (JSON).
    json
        print the report as JSON instead of a table.
    """
    from app.bench.start import run_start_bench
    from app.demo import DEMO_PHOTO
    from app.report import write_json

    console.set_up_logging(False)
    if runs < 1:
        raise UsageError(f"--runs {runs} was given; give 1 or more")
    with console.progress("bench start") as progress:
        result = run_start_bench(runs, source or DEMO_PHOTO, face.arguments(), progress)
    if report is not None:
        write_json(report, result)
    console.print_json(result) if json else console.print_startup(result)
    return 0


@bench.command(name="gui")
def bench_gui(*, seconds: float = 20.0, report: Path | None = None, json: Annotated[bool, Switch] = False) -> int:
    """Measures what the window costs at 720p30: how soon it is there, what the preview takes from the line, its share of a core.

    Parameters
    ----------
    seconds
        live for so long.
    report
        file for the report (JSON).
    json
        print the report as JSON instead of a table.
    """
    from app.demo import DEMO_PHOTO
    from app.gui import measure_window
    from app.report import write_json

    console.set_up_logging(False)
    if seconds <= 0:
        raise UsageError(f"--seconds {seconds:g} was given; give more than 0")
    settings = Settings(
        source=SourceSettings(photos=(DEMO_PHOTO,)),
        input=InputSettings(spec="synthetic:size=1280x720,fps=30"),
        output=OutputSettings(null=True),
    )
    with console.progress("bench gui") as progress:
        result = measure_window(settings, seconds, progress)
    if report is not None:
        write_json(report, result)
    console.print_json(result) if json else console.print_window_costs(result)
    return 0


@bench.command(name="parts")
def bench_parts(*, rounds: int = 200, report: Path | None = None, json: Annotated[bool, Switch] = False) -> int:
    """Times every part on one thread: the models, the mesh swap, a neural swap outside of its network, the runtime layer.

    Parameters
    ----------
    rounds
        how often each is run; the median and the 95th percentile are shown.
    report
        file for the report (JSON).
    json
        print the report as JSON instead of a table.
    """
    from app.bench.parts import run_parts_bench
    from app.report import write_json
    from app.session import limit_threads

    console.set_up_logging(False)
    if rounds < 1:
        raise UsageError(f"--rounds {rounds} was given; give 1 or more")
    limit_threads()
    with console.progress("bench parts") as progress:
        result = run_parts_bench(rounds, progress)
    if report is not None:
        write_json(report, result)
    console.print_json(result) if json else console.print_costs(result)
    return 0


@bench.command(name="lanes")
def bench_lanes(
    *,
    lanes: tuple[int, ...] = (1, 2),
    ms: float = 60.0,
    frames: int = 60,
    report: Path | None = None,
    json: Annotated[bool, Switch] = False,
) -> int:
    """What several lanes gain: the real line over simulated devices, which take a declared time for each picture.

    Parameters
    ----------
    lanes
        numbers of lanes to compare; may be given several times.
    ms
        what a device takes for a picture.
    frames
        pictures of each run.
    report
        file for the report (JSON).
    json
        print the report as JSON instead of a table.
    """
    from app.bench.lanes import run_lanes_bench
    from app.report import write_json
    from app.session import limit_threads

    console.set_up_logging(False)
    if not all(1 <= count <= 16 for count in lanes) or frames < 1 or not 1 <= ms <= 10_000:
        raise UsageError(f"--lanes {lanes} --frames {frames} --ms {ms:g} were given; lanes are 1 to 16, frames 1 or more, ms 1 to 10000")
    limit_threads()
    with console.progress("bench lanes") as progress:
        result = run_lanes_bench(lanes, ms, frames, progress)
    if report is not None:
        write_json(report, result)
    console.print_json(result) if json else console.print_lanes(result)
    return 0


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


def _slow(text: str) -> tuple[str, float]:
    stage, _, ms = text.partition(":")
    try:
        return stage, float(ms)
    except ValueError:
        raise UsageError(f"--slow {text!r} was given; write STAGE:MS, as in swap:100") from None


def _run(settings: Settings, as_json: bool) -> int:
    with loading():
        from app.run import run_session
        from app.session import LiveSession

        session = LiveSession(settings)
    for remark in session.remarks():
        console.note(remark)
    report = run_session(session)
    _print(report, as_json)
    return _status(report)


def _run_controlled(settings: Settings, port: int, as_json: bool) -> int:
    from app.run import run_controlled

    report = run_controlled(settings, port, console.note)
    if report is None:
        return 0
    _print(report, as_json)
    return _status(report)


def _open_window(settings: Settings, opening: Opening) -> int:
    """One a user: a second says so, and brings the first to the front where it can."""
    from app.gui import open_window
    from app.instance import Instance, bring_forward

    with Instance() as instance:
        other = instance.claim()
        if other is not None:
            raise AppError(bring_forward(other))
        return open_window(settings, dataclasses.replace(opening, announce=instance.announce))


def _status(report: dict[str, Any]) -> int:
    from app.run import exit_status

    said = {sink.get("error") for sink in report["sinks"].values()}  # each was logged when it happened
    if report["error"] and report["error"] not in said:
        console.fail(report["error"])
    return exit_status(report)


def _print(report: dict[str, Any], as_json: bool) -> None:
    console.print_json(report) if as_json else console.print_report(report)
