"""The options of the command line that say whose face is swapped, and who wears which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from app.errors import UsageError
from app.faces_cli import photos_of
from app.settings import PeopleSettings, PersonSettings, SourceSettings
from rt.options import Wear


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """Whose face is swapped. People are counted from 1 as they come into the picture; --max-faces says how many are looked for.

    Parameters
    ----------
    person
        NUMBER=WHAT, as in 2=leave: swap, leave (shown as it is), hide (blurred), or the photo or face of the gallery that this person
        wears; may be given several times.
    others
        the same of everybody who is not named: swap, leave or hide.
    one_face_each
        the photos of --source are of different people: everybody wears another one.
    recognise
        an identity model that knows people again; otherwise a person is a face that is followed.
    people_of
        name of the preset whose people are meant where nothing else is said of them.
    """

    person: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = ()
    others: Wear | None = None
    one_face_each: Annotated[bool, Parameter(negative="")] = False
    recognise: str | None = None
    people_of: Annotated[str | None, Parameter(show=False)] = None

    def settings(self, source: SourceSettings) -> PeopleSettings:
        """``source``: what `--source` gave. Raises ``UsageError``, and ``PresetError`` for a face of a preset that is not here."""
        each = tuple(SourceSettings(photos=(photo,), face=source.face) for photo in source.photos) if self.one_face_each else None
        given = {"others": self.others, "each": each, "recogniser": self.recognise}
        people = _people_of(self.people_of).model_copy(update={name: value for name, value in given.items() if value is not None})
        for text in self.person:
            people = people.with_person(_person(text))
        return people


def _people_of(preset: str | None) -> PeopleSettings:
    """Of nobody in particular where there is none."""
    if preset is None:
        return PeopleSettings()
    from app.gallery import Gallery
    from app.presets import Presets

    kept = Presets().load(preset).people
    return PeopleSettings() if kept is None else kept.settings(Gallery)


def _person(text: str) -> PersonSettings:
    number, equals, what = text.partition("=")
    if not number.isdecimal() or int(number) < 1 or not equals or not what:
        raise UsageError(f"--person {text!r} was given; write NUMBER=WHAT, as in 2=leave, with a number from 1")
    if what in list(Wear):
        return PersonSettings(number=int(number), wear=Wear(what))
    return PersonSettings(number=int(number), source=SourceSettings(photos=photos_of((what,))))
