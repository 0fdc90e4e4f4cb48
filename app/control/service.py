"""What becomes of a command: the Studio's, the gallery's and the presets' names for it. Knows nothing of networks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import cv2

from app.addresses import AddressBook
from app.control.messages import (
    AlikeCommand,
    Command,
    IdentityCommand,
    Numbers,
    OthersCommand,
    Output,
    Person,
    PersonCommand,
    PresetCommand,
    QuitCommand,
    ShowCommand,
    StartCommand,
    State,
    StopCommand,
)
from app.errors import NotLiveError
from app.gallery import Gallery
from app.photo_check import Hint, PhotoCheck
from app.presets import Presets
from app.settings import PeopleSettings, PersonSettings, SourceSettings
from app.studio import Studio, StudioState
from engines.errors import PhotoError
from rt.address import shown
from rt.options import Wear
from rt.track.people import Person as Seen


class ControlService:
    """Any thread. A command may take seconds; ``state`` and ``numbers`` take microseconds and hold nobody; the
    first ``state`` after a change of the face takes milliseconds."""

    def __init__(
        self,
        studio: Studio,
        *,
        gallery: Gallery | None = None,
        presets: Presets | None = None,
        addresses: AddressBook | None = None,
        show: Callable[[], None] | None = None,
        leave: Callable[[], None] | None = None,
    ) -> None:
        """``gallery``, ``presets`` and ``addresses``: the user's otherwise. ``show`` brings the window to the front and ``leave`` asks the
        program to end; each is called on some thread and must return at once."""
        self.studio = studio
        self.gallery = gallery or Gallery()
        self.presets = presets or Presets()
        self._addresses = addresses or AddressBook()
        self._show, self._leave = show, leave
        self._guard = threading.Lock()
        self._preset: str | None = None  # guarded by _guard, as is the next
        self._named: dict[SourceSettings, str | None] = {SourceSettings(): None}  # replaced as a whole

    def obey(self, command: Command) -> State:
        """Raises ``AppError``, ``RtError``, ``EngineError``."""
        match command:
            case StartCommand():
                self.studio.start()
            case StopCommand():
                self.studio.stop()
            case PresetCommand():
                self._take_preset(command.name)
            case IdentityCommand():
                self._wear(command)
            case PersonCommand():
                self._give(command)
            case OthersCommand():
                self._change_people(lambda people: people.model_copy(update={"others": Wear(command.wear)}))
            case AlikeCommand():
                self._change_people(lambda people: PeopleSettings(recogniser=people.recogniser))
            case ShowCommand():
                self._call(self._show, "there is no window to be shown: ffrt runs with --headless")
            case QuitCommand():
                self._call(self._leave, "this ffrt cannot be ended from here; end it where it was started")
        return self.state()

    def state(self) -> State:
        studio = self.studio
        settings, session = studio.settings, studio.session
        outputs: tuple[Output, ...] = ()
        video = input_error = None
        seen: tuple[Seen, ...] = ()
        if session is not None:
            seen, input_error = session.people(), session.source().get("lost", {}).get("why")
            video = None if session.line.video is None else str(session.line.video)
            facts = [(runner.sink.name, runner.statistics()) for runner in session.line.runners]
            outputs = tuple(Output(name=name, state=fact["state"], frames=fact["frames"], error=fact.get("error")) for name, fact in facts)
        people = settings.people
        names = self._names_of([settings.source, *people.sources])
        with self._guard:
            preset = self._preset
        return State(
            state=studio.state,
            error=studio.error,
            preset=preset,
            face=names[settings.source],
            photos=len(settings.source.photos),
            input=_without_folder(settings.input.spec),
            input_error=input_error,
            video=video,
            others=people.others.value,
            people=_people(people, seen, names),
            outputs=outputs,
        )

    def numbers(self) -> Numbers | None:
        """None where nothing runs."""
        found = self.studio.metrics()
        if found is None:
            return None
        return Numbers(
            frames_in=found.frames_in,
            frames_out=found.frames_out,
            dropped=found.dropped,
            age_ms=found.age_ms,
            lost_frames=found.lost_frames,
        )

    def snapshot(self) -> bytes:
        """PNG of the next picture. Raises ``NotLiveError``."""
        done, data = cv2.imencode(".png", self.studio.snapshot(), [cv2.IMWRITE_PNG_COMPRESSION, 1])
        if not done:
            raise NotLiveError("the picture could not be made a PNG; try again")
        return data.tobytes()

    def _take_preset(self, name: str) -> None:
        preset = self.presets.load(name)
        self.studio.revise(lambda settings: preset.applied(settings, self._addresses.url, self.gallery))
        with self._guard:
            self._preset = name

    def _wear(self, command: IdentityCommand) -> None:
        source = SourceSettings() if command.nobody else self._source_of(command)
        self.studio.revise(lambda settings: settings.wearing(source))

    def _give(self, command: PersonCommand) -> None:
        if command.only:
            self._change_people(lambda people: people.only(command.number))
            return
        wear = Wear(command.wear or Wear.SWAP)
        source = self._source_of(command) if command.wear is None else None
        self._change_people(lambda people: people.with_person(PersonSettings(number=command.number, wear=wear, source=source)))

    def _source_of(self, command: IdentityCommand | PersonCommand) -> SourceSettings:
        if command.face is not None:
            return self.gallery.find(command.face).source
        source = SourceSettings(photos=tuple(map(Path, command.photos or ())))
        self._look_at(source)
        return source

    def _change_people(self, change: Callable[[PeopleSettings], PeopleSettings]) -> None:
        self.studio.revise(lambda settings: settings.model_copy(update={"people": change(settings.people)}))

    def _names_of(self, sources: Sequence[SourceSettings]) -> dict[SourceSettings, str | None]:
        """Of the gallery's faces whose photos these are; looked for when a face is new here, whoever changed it."""
        with self._guard:
            known = self._named
        names = {source: known[source] if source in known else self._look_up(source) for source in sources}
        with self._guard:
            self._named = names
        return names

    def _look_up(self, source: SourceSettings) -> str | None:
        found = self.gallery.wearing(source)
        return None if found is None else found.name

    def _look_at(self, source: SourceSettings) -> None:
        """A line does so by itself; where none is live, a photo without a face would be found out at the next start alone."""
        if self.studio.state is not StudioState.LIVE:
            check = PhotoCheck()
            for photo in source.photos:
                if Hint.NO_FACE in check.look_at(photo).hints:
                    raise PhotoError(f"no face was found in {photo}; give a photo of a face from the front, large and well lit")

    @staticmethod
    def _call(what: Callable[[], None] | None, otherwise: str) -> None:
        if what is None:
            raise NotLiveError(otherwise)
        what()


def _people(people: PeopleSettings, seen: Sequence[Seen], names: Mapping[SourceSettings, str | None]) -> tuple[Person, ...]:
    """Those in sight, and those who are named."""
    by_number = {person.number: person for person in seen}
    shown = {person.number for person in seen if person.in_sight} | {person.number for person in people.named}
    return tuple(_person(people.person(number), by_number.get(number), names) for number in sorted(shown))


def _person(chosen: PersonSettings, seen: Seen | None, names: Mapping[SourceSettings, str | None]) -> Person:
    return Person(
        number=chosen.number,
        in_sight=seen is not None and seen.in_sight,
        wear=chosen.wear.value,
        face=None if chosen.source is None else names.get(chosen.source),
        own=chosen.source is not None,
        perhaps=tuple(sorted(seen.perhaps)) if seen is not None else (),
    )


def _without_folder(spec: str) -> str:
    """A file by its name alone."""
    return Path(spec).name if "/" in spec and "://" not in spec and not spec.startswith("synthetic:") else shown(spec)
