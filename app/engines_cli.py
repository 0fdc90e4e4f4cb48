"""`ffrt engines`: builds engines for GPUs, lists and removes them, and compares them with fp32."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter

from app import console
from app.errors import UsageError
from app.parameters import Switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from engines.build.child import Progress

engines = cyclopts.App(name="engines", help="Builds engines for GPUs, and proves them against fp32.")

Precision = Literal["fp32", "fp16", "int8", "fp8"]
Runtime = Literal["rtx", "tensorrt"]
Shows = Literal["face", "eye", "scene"]


@engines.command
def build(
    model: str,
    /,
    *,
    runtime: Runtime = "rtx",
    precision: Precision = "fp32",
    targets: Annotated[str | None, Parameter(name="--for")] = None,
    batch: str = "1",
    shape: tuple[str, ...] = (),
    crops: Path | None = None,
    shows: Shows | None = None,
    pixels: str | None = None,
    memory: int | None = None,
    effort: int | None = None,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Builds an engine of MODEL, unless it is built already. For rtx no GPU is needed.

    Parameters
    ----------
    model
        path of an ONNX file, FAMILY:FILE where it fits several families, or the name of a model that is here (`ffrt models list --here`).
    runtime
        rtx (TensorRT for RTX: any machine, GeForce RTX 20 to 50) or tensorrt (for the GPU of this machine).
    precision
        below fp32 the converted model is compared with fp32 first, and refused when it differs too much.
    targets
        chips, as in sm_86,sm_89; sm_75, sm_86, sm_89 and sm_120 otherwise. fp8 takes sm_89 and later alone.
    batch
        how many faces at once: 4, 1..8, or 1..4..8 for one that is fastest at 4.
    shape
        NAME=1x3x640x640 for an input whose sizes may vary; may be given several times. A known family has a usual one.
    crops
        folder of 32 or more crops from your own camera, to calibrate with and to compare on; those that were recorded for MODEL otherwise.
    shows
        what a model of no known family looks at, for crops that come from the portraits of the program.
    pixels
        MEAN,STD that such a model wants of pixels / 255, as in 0.5,0.5; a known family gives its own.
    memory
        what the build may take, in MB (Linux).
    effort
        0 (quick build) to 5 (quick engine).
    json
        print the result as JSON.
    """
    from app import engine_builds

    console.set_up_logging(False)
    request = _request(model, runtime, precision, targets, batch, shape, crops, shows, pixels, memory, effort)
    with _progress("build") as report:
        result = engine_builds.build(request, report)
    console.print_json(result) if json else console.print_engine(result)
    return 0


@engines.command(name="list")
def list_engines(*, json: Annotated[bool, Switch] = False) -> int:
    """Lists the engines that are built.

    Parameters
    ----------
    json
        print the list as JSON.
    """
    from app import engine_builds

    console.set_up_logging(False)
    found = engine_builds.entries()
    console.print_json(found) if json else console.print_engines(found, engine_builds.summary(found))
    return 0


@engines.command
def prune(
    *,
    older_than: float | None = None,
    max_size: float | None = None,
    all: Annotated[bool, Switch] = False,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Removes engines that are damaged, or that another version of the runtime or of ffrt built.

    Parameters
    ----------
    older_than
        also those built longer ago, in days.
    max_size
        also the oldest, until so many MB are left.
    all
        every one.
    json
        print the result as JSON.
    """
    from app import engine_builds

    console.set_up_logging(False)
    removed = engine_builds.prune(older_than, max_size, all)
    console.print_json(removed) if json else console.print_removed(removed, engine_builds.summary(removed))
    return 0


@engines.command(name="verify-parity")
def verify_parity(
    model: str,
    /,
    *,
    precision: Precision = "fp32",
    runtime: str | None = None,
    candidate: Path | None = None,
    shape: tuple[str, ...] = (),
    crops: Path | None = None,
    shows: Shows | None = None,
    pixels: str | None = None,
    memory: int | None = None,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Compares MODEL at a precision with its fp32 self on real crops. Exit status 1 when it differs too much.

    Parameters
    ----------
    model
        path of an ONNX file, FAMILY:FILE where it fits several families, or the name of a model that is here (`ffrt models list --here`).
    precision
        converts the model to it and compares on the processor.
    runtime
        compares the built engines of this runtime instead (rtx or tensorrt; needs the GPU); one that passes may then be used.
    candidate
        compares this file instead, on the runtime named, or on the processor.
    shape
        NAME=1x3x640x640 for an input whose sizes may vary; may be given several times.
    crops
        folder of 32 or more crops from your own camera; those that were recorded for MODEL otherwise.
    shows
        what a model of no known family looks at, for crops that come from the portraits of the program.
    pixels
        MEAN,STD that such a model wants of pixels / 255, as in 0.5,0.5; a known family gives its own.
    memory
        what the comparison may take, in MB (Linux).
    json
        print the verdict as JSON.
    """
    from app import engine_builds

    console.set_up_logging(False)
    request = _request(model, "rtx", precision, None, "1", shape, crops, shows, pixels, memory, None)
    with _progress("verify") as report:
        result = engine_builds.verify_parity(request, runtime, candidate, report)
    console.print_json(result) if json else console.print_parity(result)
    return 0 if result["passed"] else 1


@engines.command
def calibrate(
    model: str,
    /,
    *,
    input: Annotated[str, Parameter(allow_leading_hyphen=True)] = "0",
    loop: Annotated[bool, Switch] = False,
    out: Path | None = None,
    count: int = 64,
    seconds: float = 20.0,
    yes: Annotated[bool, Switch] = False,
    json: Annotated[bool, Switch] = False,
) -> int:
    """Records crops of your face as MODEL looks at it, for `build --crops` and `verify-parity --crops`. They stay on this machine.

    Parameters
    ----------
    model
        path of an ONNX file, FAMILY:FILE where it fits several families, or the name of a model that is here (`ffrt models list --here`).
    input
        as in `ffrt --input`: your camera, or a clip.
    loop
        start a file again at its end.
    out
        folder for the crops; one in the cache folder otherwise.
    count
        how many crops, 32 or more.
    seconds
        over which they are spread; move and talk meanwhile.
    yes
        do not ask; the face is yours, or its owner agreed.
    json
        print the result as JSON.
    """
    from app.calibrate import CalibrationRequest, consent, record
    from app.settings import InputSettings

    console.set_up_logging(False)
    request = CalibrationRequest(model, InputSettings(spec=input, loop=loop), out, count, seconds)
    request.check()
    console.note(consent(request))
    if not yes and not _agreed():
        console.note("nothing was recorded")
        return 1
    with console.progress("calibrate") as tell:
        result = record(request, tell)
    console.print_json(result) if json else console.note(f"wrote {result['crops']} crops ({result['shows']}) to {result['folder']}")
    return 0


def _agreed() -> bool:
    """Raises ``UsageError`` where nobody can answer."""
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether pictures may be taken; add --yes if the one before the camera agrees")
    return console.confirm("Record?")


def _request(
    model: str,
    runtime: str,
    precision: str,
    targets: str | None,
    batch: str,
    shapes: tuple[str, ...],
    crops: Path | None,
    shows: str | None,
    pixels: str | None,
    memory_mb: int | None,
    effort: int | None,
) -> Any:
    from app.engine_builds import Framing, Request

    framing = None if shows is None else Framing(shows)
    return Request(model, runtime, precision, targets, batch, shapes, crops, framing, pixels, memory_mb, effort)


@contextmanager
def _progress(title: str) -> Iterator[Callable[[Progress], None]]:
    """A bar on stderr."""
    with console.progress(title) as tell:
        yield lambda progress: tell(progress.done, progress.total or None, progress.what)
