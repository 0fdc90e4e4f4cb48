"""One immutable Settings tree. The command line, presets and the window all produce it; nothing else is read while live."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from engines.device.kinds import check_names
from engines.face_regions import WORN, Region
from rt.address import shown
from rt.options import CROP_LEAVES_MIN, Blending, Corner, CropFit, OnLost, Wear


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


EncoderName = Literal["auto", "libx264", "libx265", "h264_nvenc", "hevc_nvenc"]
"""As in ``rt.sinks.encoders``, which loads FFmpeg."""

_Share = Annotated[float, Field(ge=0, le=1)]


class SourceSettings(_Part):
    """The face to wear."""

    photos: tuple[Path, ...] = ()
    """Photos of one person."""
    face: int | None = Field(None, ge=1)
    """Which face of the photo, counted from 1 by size; None is the largest."""


class PersonSettings(_Part):
    """What one of the people filmed gets."""

    number: int = Field(ge=1)
    """In the order of their coming (``rt.track.people``)."""
    wear: Wear = Wear.SWAP
    source: SourceSettings | None = None
    """The face that this person wears; None is what everybody wears."""


class PeopleSettings(_Part):
    """Whose face is swapped, and who wears which."""

    others: Wear = Wear.SWAP
    """What those get who are not named."""
    each: tuple[SourceSettings, ...] = ()
    """Faces, one each in the order of coming and round again, in the place of ``Settings.source``; empty: all wear that."""
    named: tuple[PersonSettings, ...] = ()
    recogniser: str | None = None
    """The identity model that knows people again; None goes by where their faces are."""

    @field_validator("named")
    @classmethod
    def _each_once(cls, value: tuple[PersonSettings, ...]) -> tuple[PersonSettings, ...]:
        numbers = [person.number for person in value]
        if len(set(numbers)) != len(numbers):
            raise ValueError(f"people {', '.join(map(str, numbers))} were given; name each once")
        return value

    def person(self, number: int) -> PersonSettings:
        """What person ``number`` gets, named or not."""
        named = next((person for person in self.named if person.number == number), None)
        return named or PersonSettings(number=number, wear=self.others)

    def with_person(self, person: PersonSettings) -> PeopleSettings:
        """With ``person`` named, in the place of what was said of the same before."""
        others = tuple(other for other in self.named if other.number != person.number)
        return self.model_copy(update={"named": (*others, person)})

    def only(self, number: int) -> PeopleSettings:
        """That person alone is swapped, with the face of their own if they have one; everybody else is left."""
        named = self.person(number).model_copy(update={"wear": Wear.SWAP})
        return self.model_copy(update={"others": Wear.LEAVE, "named": (named,)})

    @property
    def sources(self) -> tuple[SourceSettings, ...]:
        """Every face that somebody named, or one of those not named, may wear; each once."""
        of_named = (person.source for person in self.named if person.wear is Wear.SWAP and person.source is not None)
        return tuple(dict.fromkeys([*self.each, *of_named]))


class InputSettings(_Part):
    """Where the pictures come from; None is the source's own choice."""

    spec: str = "synthetic:"
    width: int | None = Field(None, ge=16, le=16384)
    height: int | None = Field(None, ge=16, le=16384)
    fps: float | None = Field(None, gt=0, le=1000)
    fourcc: str | None = Field(None, min_length=4, max_length=4)
    loop: bool = False
    timecode: bool = False
    """Paint the capture time into every picture."""
    mirror: bool = False
    """For everybody, and not in the preview alone."""
    rotate: Literal[0, 90, 180, 270] = 0
    """Degrees, clockwise; before it is mirrored."""
    crop: tuple[_Share, _Share, _Share, _Share] = (0.0, 0.0, 0.0, 0.0)
    """Shares of the picture, turned and mirrored, that are cut away: left, top, right, bottom."""
    crop_fit: CropFit = CropFit.FILL
    reconnect_s: float | None = Field(None, ge=0, le=31_536_000)
    """How long a camera or an address that broke off is waited for; 0 ends the line at once, None waits for ever."""
    exposure_ms: float | None = Field(None, ge=0, le=1000)
    """None leaves a camera as it is, 0 lets it decide, else how long it exposes each picture."""

    @field_validator("crop")
    @classmethod
    def _leaves_something(cls, crop: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        if max(crop[0] + crop[2], crop[1] + crop[3]) > 1 - CROP_LEAVES_MIN:
            raise ValueError(f"left and right, top and bottom may take {1 - CROP_LEAVES_MIN:g} of the picture together, no more")
        return crop


class LookSettings(_Part):
    """How the face is worn."""

    swapper: str = "mesh"
    detector: str = "blazeface-full"
    landmarks: str | None = None
    """What neural swappers, masks and enhancers align faces by; None is FaceMesh, which the tracker uses in any case."""
    identity: str | None = None
    """The recogniser that swappers are fed by; None is the one that they were trained with."""
    masks: tuple[str, ...] = ("hands",)
    enhancer: str | None = None
    enhancer_opacity: float = Field(0.8, ge=0, le=1)
    enhancer_weight: float = Field(0.5, ge=0, le=1)
    """What an enhancer that can be told (CodeFormer) prefers: 0 a fine picture, 1 the face it was given."""
    pixel_boost: int = Field(1, ge=1, le=4)
    """A neural swapper works on so many times its own size, each side."""
    regions: tuple[Region, ...] = Field(WORN, min_length=1)
    """Where the face is worn, of masks that tell regions apart (BiSeNet's)."""
    blending: Blending = Blending.SOFT
    seam_width: float = Field(1.0, ge=0.1, le=2)
    """The seam is so many times as wide as the swapper has it by itself."""
    colour_match: float = Field(1.0, ge=0, le=1)
    """0 leaves the face its own colours, 1 gives it those of the person filmed: of the mesh, and of a seam that is matched."""
    colour_transfer: float = Field(0.0, ge=0, le=1)
    """0 leaves the face its own mean colour and contrast, 1 gives it those of the face it covers, whatever swapper drew it."""
    sharpness: float = Field(0.0, ge=0, le=1)
    runtime: str = "auto"
    """What runs neural models: ``auto``, a runtime, or several in the order in which they are tried (``rtx,ort``)."""
    opacity: float = Field(1.0, ge=0, le=1)
    on_lost: OnLost = OnLost.HOLD
    smoothing: float = Field(1.0, ge=0, le=1)
    """0 takes landmarks as they come, 1 filters them fully."""
    badge: str = Field("", max_length=60)
    """Text in a corner of every picture in which a face may be worn; empty shows none."""
    badge_corner: Corner = Corner.BOTTOM_LEFT
    max_faces: int = Field(1, ge=1, le=8)
    hold_frames: int = Field(5, ge=0, le=120)
    detect_every: int = Field(15, ge=1, le=600)
    """Look for further faces every so many frames."""

    @field_validator("badge")
    @classmethod
    def _is_one_line(cls, badge: str) -> str:
        if not badge.isprintable():
            raise ValueError("a badge is one line of printable letters")
        return badge


class OutputSettings(_Part):
    """Where the pictures go, any number at once."""

    streams: tuple[str, ...] = ()
    """rtmp, rtmps, srt, udp addresses. They may hold a secret key: never logged whole."""
    virtual_camera: str | None = None
    """Device name, or an empty string for the first one free."""
    record: Path | None = None
    overwrite: bool = False
    null: bool = False
    bitrate_bps: int | None = Field(None, ge=50_000, le=200_000_000)
    """None chooses by size and rate."""
    encoder: EncoderName = "auto"
    """Of streams and recordings; ``auto`` takes an NVIDIA GPU's where it opens."""

    def __bool__(self) -> bool:
        return bool(self.streams or self.record or self.null or self.virtual_camera is not None)


class RunSettings(_Part):
    """How long, and what is measured."""

    seconds: float | None = Field(None, gt=0, le=31_536_000)
    report: Path | None = None
    devices: tuple[str, ...] = ("host",)
    """What works on pictures, a lane each: ``host``, ``cuda:0``, …"""
    gpu_memory_mb: int = Field(0, ge=0, le=1_000_000)
    """What each lane may take of its GPU's memory, in millions of bytes; 0 is all there is."""
    build_engines: bool = False
    """Engines that the look's models lack are built while live, and taken as soon as they are proven."""
    budget_ms: float = Field(100.0, ge=0, le=10_000)
    """How old pictures may be, as the 95th percentile of a second, before something of the look is given up; 0 gives up nothing."""
    slow_ms: dict[str, float] = {}
    """Stage name → milliseconds it is made to take longer: for benches."""

    @field_validator("devices")
    @classmethod
    def _meant_devices(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return check_names(value)

    @field_validator("slow_ms")
    @classmethod
    def _known_stage(cls, value: dict[str, float]) -> dict[str, float]:
        for name, extra_ms in value.items():
            if name not in STAGES or not 0 <= extra_ms <= 10_000:
                raise ValueError(f"{name}:{extra_ms:g} was given; a stage is one of {', '.join(STAGES)}, ms lie in 0 to 10000")
        return value


STAGES = ("track", "swap", "enhance", "hide")
"""The stages of a lane that a bench can slow down."""


class Settings(_Part):
    """Everything a live session needs to know."""

    source: SourceSettings = SourceSettings()
    people: PeopleSettings = PeopleSettings()
    input: InputSettings = InputSettings()
    look: LookSettings = LookSettings()
    output: OutputSettings = OutputSettings()
    run: RunSettings = RunSettings()

    def wearing(self, source: SourceSettings) -> Settings:
        """With ``source`` for everybody who has no face of their own; faces that were given out one each are taken back."""
        return self.model_copy(update={"source": source, "people": self.people.model_copy(update={"each": ()})})

    def public(self) -> dict[str, object]:
        """JSON-ready, without secrets: stream keys are starred."""
        tree = self.model_dump(mode="json")
        tree["output"]["streams"] = [shown(url) for url in self.output.streams]
        tree["input"]["spec"] = shown(self.input.spec)
        return tree


def parse_size(text: str) -> tuple[int, int]:
    """``1280x720`` → (1280, 720). Raises ValueError with what is accepted."""
    match = re.fullmatch(r"(\d+)[x×](\d+)", text.strip().lower())
    if match is None:
        raise ValueError(f"size {text!r} was given; write WIDTHxHEIGHT, as in 1280x720")
    return int(match[1]), int(match[2])


def parse_crop(text: str) -> tuple[float, float, float, float]:
    """``0.1,0,0.1,0`` → what is cut away on the left, top, right, bottom. Raises ValueError with what is accepted."""
    try:
        left, top, right, bottom = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"crop {text!r} was given; write LEFT,TOP,RIGHT,BOTTOM as shares of the picture, as in 0.1,0,0.1,0") from None
    return left, top, right, bottom


AUTOMATIC = "auto"
"""How an exposure is written that the camera decides."""


def parse_exposure(text: str) -> float:
    """``auto`` → 0; milliseconds otherwise. Raises ValueError with what is accepted."""
    try:
        return 0.0 if text == AUTOMATIC else float(text)
    except ValueError:
        raise ValueError(f"exposure {text!r} was given; write auto, or milliseconds as in 8.3") from None


def parse_bitrate(text: str) -> int:
    """``2500k``, ``4M``, ``800000`` → bits per second. Raises ValueError with what is accepted."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", text.strip())
    if match is None:
        raise ValueError(f"bitrate {text!r} was given; write bits per second, as in 2500k or 4M")
    return round(float(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()])
