"""From Settings to the parts of a line: the one place that knows which part has which name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from app.parts import Parts, close_embedded
from app.settings import InputSettings, Settings, SourceSettings
from engines.detect.contract import Detector
from engines.device.contract import Device
from engines.device.kinds import compositor_of, has_memory
from engines.family import Kind
from engines.identity.contract import Recogniser
from engines.identity.source import load_source
from engines.landmarks.facemesh import FaceMesh
from engines.swap.contract import ScalableSwapper, Swapper
from rt.budget import BudgetOptions
from rt.capture import CaptureRequest, open_spec
from rt.capture.framing import FramedSource, Framing
from rt.capture.reconnect import ReconnectingSource
from rt.clock import Clock
from rt.compose.badge import Badge
from rt.compose.contract import Compositor, compositors
from rt.compose.rehearsal import rehearse, rehearse_detector, rehearse_recogniser
from rt.options import Look, Role
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker

RESTYLED = (
    *("opacity", "on_lost", "enhancer_opacity", "blending", "seam_width", "colour_match", "colour_transfer", "sharpness"),
    *("badge", "badge_corner", "smoothing", "max_faces", "hold_frames", "detect_every"),
)
"""Fields of a look that are no part's: what is worn, and its identity, stay when they change."""


ADJUSTED = ("mirror", "rotate", "crop", "crop_fit", "exposure_ms")
"""Fields of an input that change while the source runs, as long as its pictures stay as large as they are."""


def parts(settings: Settings) -> Parts:
    """Where the parts that Settings name come from. Each thread that uses parts has its own; whoever made them closes them.

    Raises ``EngineError`` for a runtime that is not known or cannot run here.
    """
    return Parts(settings.look)


def detector(settings: Settings, here: Parts) -> Detector:
    """Raises ``EngineError`` for one that is not here, or is of another kind."""
    made: Detector = here.named(Kind.DETECTOR, settings.look.detector)
    rehearse_detector(made)
    return made


def look(settings: Settings, here: Parts, detector: Detector, mesh: FaceMesh) -> Look:
    """The swapper and the identities it is to draw; nothing is drawn without a source photo, unless the swapper needs none."""
    unworn = unworn_look(settings, here)
    assert unworn.swapper is not None
    wanted = worn_sources(settings, unworn.swapper)
    if not wanted:
        return dressed(Look(opacity=unworn.opacity, on_lost=unworn.on_lost), settings, {})
    with ThreadPoolExecutor(1, "warm-up") as beside:
        warm = beside.submit(rehearse, unworn)
        faces = {source: load_source(source.photos, source.face, detector, mesh) for source in wanted}
        identities = {source: unworn.swapper.prepare(found) for source, found in faces.items()}
        warm.result()
    return dressed(unworn, settings, identities)


def rehearse_unworn(settings: Settings) -> None:
    """Where no face is chosen yet, once in a program: what one that is chosen while live would wait for. Raises as ``look``."""
    here = parts(settings)
    try:
        rehearse(unworn_look(settings, here))
    finally:
        here.close()


def worn_sources(settings: Settings, swapper: Swapper) -> tuple[SourceSettings, ...]:
    """The faces that somebody may wear, each once."""
    has_one = not settings.people.each and (settings.source.photos or not swapper.needs_photo)
    everybody = (settings.source,) if has_one else ()
    return tuple(dict.fromkeys([*everybody, *settings.people.sources]))


def redressed(look: Look, before: Settings, settings: Settings) -> Look:
    """``look`` of the settings ``before`` with people as ``settings`` have them; faces that were worn before stay prepared.

    Hundreds of milliseconds for each that is new. Raises as ``look`` does.
    """
    known = identities_of(look, before)
    if look.swapper is not None:
        wanted = worn_sources(settings, look.swapper)
        known |= _prepared([source for source in wanted if source not in known], look.swapper, settings)
    return dressed(look, settings, known)


def _prepared(sources: Sequence[SourceSettings], swapper: Swapper, settings: Settings) -> dict[SourceSettings, Any]:
    """With a detector and a mesh of its own: the line works with the others meanwhile."""
    if not sources:
        return {}
    here, mesh = parts(settings), FaceMesh()
    try:
        finds = detector(settings, here)
        return {source: swapper.prepare(load_source(source.photos, source.face, finds, mesh)) for source in sources}
    finally:
        close_embedded(mesh)
        here.close()


def identities_of(look: Look, settings: Settings) -> dict[SourceSettings, Any]:
    """What was prepared for ``look``, which was made of ``settings``."""
    people = settings.people
    known = dict(zip(people.each, look.seats, strict=False))
    known |= {person.source: look.roles[person.number].identity for person in people.named if person.source is not None}
    known[settings.source] = look.identity
    return {source: identity for source, identity in known.items() if identity is not None}


def dressed(look: Look, settings: Settings, identities: Mapping[SourceSettings, Any]) -> Look:
    """``look`` with the people of ``settings``; a face that is not among ``identities`` is not worn."""
    people = settings.people
    seats = tuple(identities.get(source) for source in people.each)
    own = {person.number: identities.get(person.source) for person in people.named if person.source is not None}
    roles = {person.number: Role(person.wear, own.get(person.number)) for person in people.named}
    return replace(look, identity=identities.get(settings.source), roles=roles, others=Role(people.others), seats=seats)


def unworn_look(settings: Settings, here: Parts) -> Look:
    """Everything of a look but the identity. Raises ``ModelError`` for a part that is not here."""
    chosen = settings.look
    here.open_helpers()
    return Look(
        swapper=here.named(Kind.SWAPPER, chosen.swapper),
        opacity=chosen.opacity,
        on_lost=chosen.on_lost,
        masks=tuple(here.named(Kind.MASK, name) for name in chosen.masks),
        enhancer=None if chosen.enhancer is None else here.named(Kind.ENHANCER, chosen.enhancer),
        enhancer_opacity=chosen.enhancer_opacity,
        blending=chosen.blending,
        seam_width=chosen.seam_width,
        colour_match=chosen.colour_match,
        colour_transfer=chosen.colour_transfer,
        sharpness=chosen.sharpness,
        badge=_badge(settings),
        faces=chosen.max_faces,
    )


def remarks(settings: Settings, look: Look) -> tuple[str, ...]:
    """What of ``settings`` does nothing here, or shows a face that somebody may think hidden: a sentence each, for the user."""
    said: list[str] = []
    if settings.run.gpu_memory_mb and not any(map(has_memory, settings.run.devices)):
        said.append("--gpu-memory changes nothing: none of --device is a GPU")
    if look.swapper is None or not look.swaps:
        return (*said, "no --source was given: the picture passes as it is, with the face that is filmed")
    if settings.source.photos and not look.swapper.needs_photo:
        said.append(f"{look.swapper.name} draws one person alone: --source is not used")
    if settings.look.pixel_boost > 1 and (not isinstance(look.swapper, ScalableSwapper) or look.swapper.smaller is None):
        said.append(f"{look.swapper.name} has one size: --pixel-boost changes nothing")
    return tuple(said)


def restyled(look: Look, settings: Settings) -> Look:
    """``look`` with what takes no other part: its parts and its identity stay."""
    chosen = settings.look
    return replace(
        look,
        opacity=chosen.opacity,
        on_lost=chosen.on_lost,
        enhancer_opacity=chosen.enhancer_opacity,
        blending=chosen.blending,
        seam_width=chosen.seam_width,
        colour_match=chosen.colour_match,
        colour_transfer=chosen.colour_transfer,
        sharpness=chosen.sharpness,
        badge=_badge(settings, look.badge),
        faces=chosen.max_faces,
    )


def _badge(settings: Settings, before: Badge | None = None) -> Badge | None:
    """``before``, which is drawn already, where it is the same. Raises ``OptionError`` for letters that no font has."""
    wanted = settings.look.badge.strip()
    made = Badge(wanted, settings.look.badge_corner) if wanted else None
    return before if made == before else made


def takes_other_parts(look: Look, before: Settings, after: Settings) -> bool:
    """Whether ``restyled`` and ``redressed`` are not enough for ``look``, which was made of ``before``."""
    same = {name: getattr(before.look, name) for name in RESTYLED}
    takes_others = after.look.model_copy(update=same) != before.look or before.people.recogniser != after.people.recogniser
    first_worn = look.swapper is None and bool(after.people.sources)
    return takes_others or first_worn or before.source != after.source


def source(settings: Settings, clock: Clock) -> FramedSource:
    """Raises ``OptionError`` for a SPEC that means nothing; nothing is opened yet."""
    wanted = settings.input
    request = CaptureRequest(wanted.width, wanted.height, wanted.fps, wanted.fourcc, wanted.loop, reconnect=wanted.reconnect_s != 0)
    opened = open_spec(wanted.spec, request, clock)
    if opened.live and wanted.reconnect_s != 0:
        opened = ReconnectingSource(opened, clock, wanted.reconnect_s)
    made = FramedSource(opened, framing(wanted))
    made.expose(wanted.exposure_ms)
    return made


def framing(wanted: InputSettings) -> Framing:
    return Framing(wanted.mirror, wanted.rotate, wanted.crop, wanted.crop_fit)


def same_source(before: InputSettings, after: InputSettings) -> bool:
    """Whether what runs for ``before`` can go on for ``after``, adjusted while live."""
    adjusted = {name: getattr(before, name) for name in ADJUSTED}
    return after.model_copy(update=adjusted) == before and framing(before).keeps_size(framing(after))


def track_options(settings: Settings) -> TrackOptions:
    chosen = settings.look
    return TrackOptions(
        max_faces=chosen.max_faces,
        detect_every=chosen.detect_every,
        hold_frames=chosen.hold_frames,
        smoothing=chosen.smoothing,
    )


def tracker(settings: Settings, detector: Detector, mesh: FaceMesh) -> Tracker:
    return Tracker(detector, mesh, track_options(settings))


def recogniser(settings: Settings, here: Parts) -> Recogniser | None:
    """What knows people again. Raises ``ModelError`` for one that is not here, or is of another kind."""
    wanted = settings.people.recogniser
    if wanted is None:
        return None
    made: Recogniser = here.named(Kind.IDENTITY, wanted)
    rehearse_recogniser(made)
    return made


def budget(settings: Settings) -> BudgetOptions | None:
    """None where nothing is to be given up."""
    return BudgetOptions(budget_ms=settings.run.budget_ms) if settings.run.budget_ms else None


def compositor(name: str, device: Device) -> Compositor | None:
    """What composes on the device called ``name``; None where the processor does. Compiles: seconds. Raises ``DeviceError``."""
    kind = compositor_of(name)
    if not kind:
        return None
    with device.current():
        return compositors[kind]()
