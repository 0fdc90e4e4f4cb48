"""`ffrt bench`: measures the line and its parts, and judges a swapper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import Parameter

from app import console, told
from app.errors import UsageError
from app.face_options import FaceOptions, Whole
from app.live_options import usage
from app.parameters import ReportFile, Switch
from app.settings import InputSettings, LookSettings, OutputSettings, RunSettings, Settings, SourceSettings, parse_bitrate
from engines.device.kinds import split_names

bench = cyclopts.App(name="bench", help="Measures the line, and judges a swapper.")

Many = Parameter(consume_multiple=True)

DEFAULT_FACE = FaceOptions()


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
    gpu_memory: Whole = 0,
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
    gpu_memory
        as in `ffrt --gpu-memory`.
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
            seconds=seconds,
            report=report,
            devices=usage(split_names, device),
            gpu_memory_mb=gpu_memory,
            slow_ms=dict(map(_slow, slow)),
            budget_ms=budget_ms,
        ),
    )
    return told.run(settings, json)


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
    return told.tell(run_stream_bench(settings, seconds, report), json)


@bench.command(name="quality")
def bench_quality(
    *,
    clips: Path,
    sources: Path,
    report: ReportFile = None,
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
    return _tell(result, None, json, console.print_quality)


@bench.command(name="start")
def bench_start(
    *,
    runs: int = 5,
    source: Path | None = None,
    face: FaceOptions = DEFAULT_FACE,
    report: ReportFile = None,
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

    console.set_up_logging(False)
    if runs < 1:
        raise UsageError(f"--runs {runs} was given; give 1 or more")
    with console.progress("bench start") as progress:
        result = run_start_bench(runs, source or DEMO_PHOTO, face.arguments(), progress)
    return _tell(result, report, json, console.print_startup)


@bench.command(name="gui")
def bench_gui(*, seconds: float = 20.0, report: ReportFile = None, json: Annotated[bool, Switch] = False) -> int:
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
    return _tell(result, report, json, console.print_window_costs)


@bench.command(name="parts")
def bench_parts(*, rounds: int = 200, report: ReportFile = None, json: Annotated[bool, Switch] = False) -> int:
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
    from app.session import limit_threads

    console.set_up_logging(False)
    if rounds < 1:
        raise UsageError(f"--rounds {rounds} was given; give 1 or more")
    limit_threads()
    with console.progress("bench parts") as progress:
        result = run_parts_bench(rounds, progress)
    return _tell(result, report, json, console.print_costs)


@bench.command(name="lanes")
def bench_lanes(
    *,
    lanes: tuple[int, ...] = (1, 2),
    ms: float = 60.0,
    frames: int = 60,
    report: ReportFile = None,
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
    from app.session import limit_threads

    console.set_up_logging(False)
    if not all(1 <= count <= 16 for count in lanes) or frames < 1 or not 1 <= ms <= 10_000:
        raise UsageError(f"--lanes {lanes} --frames {frames} --ms {ms:g} were given; lanes are 1 to 16, frames 1 or more, ms 1 to 10000")
    limit_threads()
    with console.progress("bench lanes") as progress:
        result = run_lanes_bench(lanes, ms, frames, progress)
    return _tell(result, report, json, console.print_lanes)


def _slow(text: str) -> tuple[str, float]:
    stage, _, ms = text.partition(":")
    try:
        return stage, float(ms)
    except ValueError:
        raise UsageError(f"--slow {text!r} was given; write STAGE:MS, as in swap:100") from None


def _tell(result: dict[str, Any], report: Path | None, as_json: bool, table: Callable[[dict[str, Any]], None]) -> int:
    from app.report import write_json

    if report is not None:
        write_json(report, result)
    console.print_json(result) if as_json else table(result)
    return 0
