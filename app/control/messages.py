"""What is said over the control interface. `openapi.py` makes the schema of these models."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from app.documents import first_problem
from app.errors import UsageError
from app.studio import StudioState

BODY_BYTES_MAX = 16 * 1024
"""Of a request and of a WebSocket message: commands are short."""


ID_MAX = 100


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Command(_Message):
    id: str | None = Field(None, max_length=ID_MAX)
    """Comes back with the answer on a WebSocket."""


class StateCommand(_Command):
    """Says how things stand."""

    do: Literal["state"] = "state"


class StartCommand(_Command):
    """Goes live, and answers once pictures flow."""

    do: Literal["start"] = "start"


class StopCommand(_Command):
    """Ends the run in order, and answers once it has ended. The program stays."""

    do: Literal["stop"] = "stop"


class PresetCommand(_Command):
    """Takes over a preset: its look from the next frame on, an input by a new run."""

    do: Literal["preset"] = "preset"
    name: str = Field(max_length=300)


class IdentityCommand(_Command):
    """Wears another face: one of the gallery, or photos of one person on this machine. Exactly one of the three is given."""

    do: Literal["identity"] = "identity"
    face: str | None = Field(None, max_length=300)
    """Name or id of a face of the gallery."""
    photos: tuple[str, ...] | None = Field(None, min_length=1, max_length=50)
    """Whole paths."""
    nobody: Literal[True] | None = None
    """The picture passes as it is: the face that is filmed is seen."""

    @model_validator(mode="after")
    def _one_of_three(self) -> IdentityCommand:
        if sum(value is not None for value in (self.face, self.photos, self.nobody)) != 1:
            raise ValueError("give exactly one of face, photos and nobody")
        return self


WearName = Literal["swap", "leave", "hide"]
"""What may become of a face: it is swapped, shown as it was filmed, or blurred."""


class PersonCommand(_Command):
    """Says what one of the people filmed gets. Exactly one of wear, face, photos and only is given."""

    do: Literal["person"] = "person"
    number: int = Field(ge=1, le=1_000_000)
    """From 1, in the order of their coming; see ``people`` in the state."""
    wear: WearName | None = None
    """With ``swap`` the face that everybody wears."""
    face: str | None = Field(None, max_length=300)
    """Wears this face of the gallery, by name or id."""
    photos: tuple[str, ...] | None = Field(None, min_length=1, max_length=50)
    """Wears the face of these photos; whole paths."""
    only: Literal[True] | None = None
    """This person alone is swapped, everybody else is shown as filmed."""

    @model_validator(mode="after")
    def _one_of_four(self) -> PersonCommand:
        if sum(value is not None for value in (self.wear, self.face, self.photos, self.only)) != 1:
            raise ValueError("give exactly one of wear, face, photos and only")
        return self


class OthersCommand(_Command):
    """Says what everybody gets of whom nothing else was said."""

    do: Literal["others"] = "others"
    wear: WearName


class AlikeCommand(_Command):
    """Takes back what was said of people: all are swapped, and wear the same."""

    do: Literal["alike"] = "alike"


class ShowCommand(_Command):
    """Brings the window to the front."""

    do: Literal["show"] = "show"


class QuitCommand(_Command):
    """Ends the program in order; the answer comes before."""

    do: Literal["quit"] = "quit"


Command = Annotated[
    StateCommand
    | StartCommand
    | StopCommand
    | PresetCommand
    | IdentityCommand
    | PersonCommand
    | OthersCommand
    | AlikeCommand
    | ShowCommand
    | QuitCommand,
    Field(discriminator="do"),
]

COMMANDS: TypeAdapter[Command] = TypeAdapter(Command)


class Output(_Message):
    """How one output fares."""

    name: str
    state: Literal["opening", "on", "retrying", "failed", "closed"]
    frames: int
    error: str | None = None


class Person(_Message):
    """Somebody who is filmed, or was, or of whom something was said."""

    number: int
    """From 1, in the order of their coming; a command names them so."""
    in_sight: bool
    wear: WearName
    face: str | None = None
    """Name of the gallery's face that this person wears; None for other photos, and for what everybody wears."""
    own: bool = False
    """Whether it is a face of their own, and not what everybody wears."""
    perhaps: tuple[int, ...] = ()
    """People out of sight, any of whom it may be."""


class State(_Message):
    """How things stand. Stream keys are not in it; paths are in sentences about errors alone."""

    state: StudioState
    error: str | None = None
    """Why it ended by itself, or did not start."""
    preset: str | None = None
    """The one that was taken over last through this interface."""
    face: str | None = None
    """Name of the gallery's face that is worn; None for other photos and for nobody."""
    photos: int = 0
    """How many are worn."""
    input: str
    input_error: str | None = None
    """Why the input gives no pictures for now; it is opened again by itself."""
    video: str | None = None
    """What the source granted; None where nothing runs."""
    others: WearName = "swap"
    """What everybody gets of whom nothing else was said."""
    people: tuple[Person, ...] = ()
    """Those in sight, and those of whom something was said; by number."""
    outputs: tuple[Output, ...] = ()


class Face(_Message):
    """One of the gallery."""

    id: str
    """Stays when the name is changed; a command takes either."""
    name: str
    favourite: bool


class Numbers(_Message):
    """What the line measured, since it started."""

    frames_in: int
    frames_out: int
    fps: float | None = None
    """Pictures a second since the event before; None in the first."""
    dropped: dict[str, int]
    age_ms: dict[str, dict[str, float]]
    """Output → p50, p95, p99, max."""
    lost_frames: int


class StateEvent(_Message):
    """Sent when a client comes and whenever the state has changed. A client that reads slowly misses some, never the newest."""

    event: Literal["state"] = "state"
    state: State


class NumbersEvent(_Message):
    """Sent every second while live."""

    event: Literal["numbers"] = "numbers"
    numbers: Numbers


class Answer(_Message):
    """To a command on a WebSocket."""

    event: Literal["answer"] = "answer"
    id: str | None = None
    state: State | None = None
    error: str | None = None


class Failure(_Message):
    """The body of every HTTP answer that is none of 2xx."""

    error: str


Event = Annotated[StateEvent | NumbersEvent | Answer, Field(discriminator="event")]

EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def read_command(text: str | bytes, do: str | None = None) -> Command:
    """From JSON; ``do``: the command that the address named, to which the body adds its fields. Raises ``UsageError`` in one sentence."""
    try:
        facts = json.loads(text or b"{}")
    except (ValueError, RecursionError):
        raise UsageError("what was given is not JSON; see `ffrt ctl schema`") from None
    if not isinstance(facts, dict):
        raise UsageError("what was given is JSON, and no object; see `ffrt ctl schema`")
    if do is not None and facts.get("do", do) != do:
        raise UsageError(f"the message says do: {str(facts['do'])[:80]!r}, and was sent to {do}; leave `do` out")
    try:
        return COMMANDS.validate_json(json.dumps({**facts, **({} if do is None else {"do": do})}))
    except (ValidationError, RecursionError) as problems:
        what = first_problem(problems) if isinstance(problems, ValidationError) else "it is nested too deeply"
        raise UsageError(f"{what}; see `ffrt ctl schema`") from None


def id_of(text: str | bytes) -> str | None:
    """Of a message that is no command otherwise, for its answer."""
    try:
        number = json.loads(text)["id"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return number if isinstance(number, str) and len(number) <= ID_MAX else None
