"""Presets: looks that are kept by name, chosen while live, and passed on as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QLineEdit, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.addresses import AddressBook
from app.gallery import Gallery
from app.gui.cards.card import Bench, Card, note, row, show_note
from app.gui.cards.outputs import videos
from app.gui.fields import Choice, Combo, fill
from app.gui.flow import Flow
from app.gui.live import Change
from app.gui.words import tr
from app.gui.worker import shown_error
from app.presets import Preset, Presets
from app.settings import Settings
from app.studio import free_place
from rt.address import shown


@dataclass(frozen=True, slots=True)
class Side:
    """One of two looks that are compared."""

    name: str
    change: Change


def _as_it_is(settings: Settings) -> Settings:
    return settings


class PresetsCard(Card):
    """Files are read and written behind."""

    offered = Signal(str, str, object)
    """A message, the words of what can be done about it, and what does it."""
    chosen = Signal(str)
    """The preset of this name is worn."""
    compare_wished = Signal(object, object)
    """Two ``Side``s, for the left and the right."""

    def __init__(
        self, bench: Bench, presets: Presets | None = None, book: AddressBook | None = None, gallery: Gallery | None = None
    ) -> None:
        super().__init__(tr("Presets"), bench)
        self._presets = presets or Presets()
        self._book = book or AddressBook()
        self._gallery = gallery or Gallery()
        self._settings = Settings()
        self.lines: dict[str, QPushButton] = {}
        self._holder = QVBoxLayout()
        self._holder.setSpacing(6)
        self.hint = note()
        self.name = QLineEdit()
        self.name.setPlaceholderText(tr("Name of a new preset"))
        self.name.setAccessibleName(tr("Name of a new preset"))
        self.name.returnPressed.connect(self._save)
        self.save = QPushButton(tr("Save"))
        self.save.clicked.connect(self._save)
        self.with_face, self.with_camera = QCheckBox(tr("with the face")), QCheckBox(tr("with the camera"))
        self.with_people = QCheckBox(tr("with who wears what"))
        self.with_outputs = QCheckBox(tr("with the outputs, without their keys"))
        self.bring = QPushButton(tr("Import…"))
        self.bring.clicked.connect(self._ask_for_import)
        self.column.addLayout(self._holder)
        self.column.addWidget(self.hint)
        self.column.addLayout(row(self.name, self.save))
        for box in (self.with_face, self.with_people, self.with_camera, self.with_outputs):
            self.column.addWidget(box)
        self.column.addLayout(Flow(self.bring))
        self._lay_out_comparing()
        self.read()

    def _lay_out_comparing(self) -> None:
        self.sides = Combo(), Combo()
        self.compare = QPushButton(tr("Compare"))
        self.compare.setToolTip(tr("Both on one picture of the camera, left and right of a line that can be moved."))
        self.compare.clicked.connect(self._compare)
        self.comparing = QWidget()
        column = QVBoxLayout(self.comparing)
        column.setContentsMargins(0, 6, 0, 0)
        for side, name in zip(self.sides, (tr("Left"), tr("Right")), strict=True):
            side.setAccessibleName(tr("Compare: {side}").format(side=name))
            label = QLabel(name)
            label.setObjectName("muted")
            label.setBuddy(side)
            label.setMinimumWidth(52)
            line = row(label, side)
            line.setStretch(1, 1)
            column.addLayout(line)
        column.addLayout(Flow(self.compare))
        self.column.addWidget(self.comparing)

    def show_settings(self, settings: Settings) -> None:
        self._settings = settings

    def read(self) -> None:
        """What there is now."""
        self._run(self._presets.names, self._take)

    def wear(self, name: str) -> None:
        self._run(partial(self._opened, name), partial(self._wear, name))

    def save_as(self, name: str, *, replace: bool = False) -> None:
        settings = self._settings
        face, people = self.with_face.isChecked(), self.with_people.isChecked()
        camera, output = self.with_camera.isChecked(), self.with_outputs.isChecked()

        def save() -> list[str]:
            names = self._names_of(settings.output.streams) if output else {}
            preset = Preset.of(
                settings, source=face, people=people, input=camera, output=output, addresses=tuple(names.values()), gallery=self._gallery
            )
            self._presets.save(name, preset, replace=replace)
            return [shown(url) for url in settings.output.streams if output and url not in names]

        self._run(save, self._saved, partial(self._not_saved, name, replace))

    def import_file(self, file: Path, *, replace: bool = False) -> None:
        def refused(error: BaseException) -> None:
            if not replace and unquote(file.stem) in self.lines:
                self.offered.emit(shown_error(error), tr("Replace it"), partial(self.import_file, file, replace=True))
            else:
                self.offered.emit(shown_error(error), "", None)

        self._run(partial(self._presets.import_file, file, replace=replace), lambda _: self.read(), refused)

    def export(self, name: str, file: Path) -> None:
        self._run(partial(self._presets.export, name, file, replace=True, gallery=self._gallery), lambda _: None)  # the dialogue has asked

    # --- behind ---

    def _opened(self, name: str) -> Change:
        """The keyring may ask the person something, so streams' addresses are fetched here."""
        preset = self._presets.load(name)
        with_parts = preset.applied(Settings(), self._book.url, self._gallery)
        parts = {
            part: getattr(with_parts, part)
            for part in ("look", "source", "people", "input", "output")
            if getattr(preset, part) is not None
        }
        record = with_parts.output.record
        if record is not None and not record.is_absolute():  # of another machine
            record = videos() / record
            parts["output"] = with_parts.output.model_copy(update={"record": record})
        if record is not None and record.exists():
            parts["output"] = with_parts.output.model_copy(update={"record": free_place(record)})
        source = parts.get("source")
        return lambda settings: (settings if source is None else settings.wearing(source)).model_copy(update=parts)

    def _names_of(self, streams: tuple[str, ...]) -> dict[str, str]:
        """Whole address → its name in the book. The keyring is asked for those alone that it may be."""
        places = set(map(shown, streams))
        known = {self._book.url(entry.name): entry.name for entry in self._book.entries() if entry.shown in places}
        return {url: known[url] for url in streams if url in known}

    # --- what comes back ---

    def _wear(self, name: str, change: Change) -> None:
        self.changed.emit(change)
        self.chosen.emit(name)

    def _saved(self, nameless: list[str]) -> None:
        self.name.clear()
        self.read()
        if nameless:
            words = tr("Saved without {addresses}: only an address that was given a name is kept with a preset.")
            self.offered.emit(words.format(addresses=", ".join(nameless)), "", None)

    def _not_saved(self, name: str, replace: bool, error: BaseException) -> None:
        if not replace and name in self.lines:
            self.offered.emit(shown_error(error), tr("Replace it"), partial(self.save_as, name, replace=True))
        else:
            self.offered.emit(shown_error(error), "", None)

    def _take(self, names: list[str]) -> None:
        while (item := self._holder.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self.lines = {}
        for name in names:
            self._holder.addWidget(self._line(name))
        self._offer_sides(names)
        show_note(self.hint, "" if names else tr("None yet: give what you see a name, and keep it."))

    def _offer_sides(self, names: list[str]) -> None:
        """What is worn now, and every preset; the one that was chosen stays chosen."""
        choices = [Choice(None, tr("As it is now")), *(Choice(name, name) for name in names)]
        for number, box in enumerate(self.sides):
            before = box.currentData() if box.count() else (names[0] if number and names else None)
            fill(box, choices, before if before in names else None)
        self.comparing.setVisible(bool(names))

    def _compare(self) -> None:
        names = tuple(box.currentData() for box in self.sides)

        def opened() -> list[Side]:
            return [Side(name or tr("As it is now"), self._opened(name) if name else _as_it_is) for name in names]

        self._run(opened, lambda sides: self.compare_wished.emit(*sides))

    def _line(self, name: str) -> QWidget:
        wear = QPushButton(name.replace("&", "&&"))
        wear.setObjectName("entry")
        wear.setAccessibleName(tr("Wear preset {name}").format(name=name))
        wear.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        wear.setToolTip(name)
        wear.clicked.connect(lambda: self.wear(name))
        self.lines[name] = wear
        export = self._small("↗", tr("Export {name}").format(name=name), lambda: self._ask_for_export(name))
        remove = self._small("✕", tr("Remove {name}").format(name=name), lambda: self._remove(name))
        line = QWidget()
        line.setLayout(row(wear, export, remove))
        layout = line.layout()
        assert layout is not None
        layout.setContentsMargins(0, 0, 0, 0)
        return line

    @staticmethod
    def _small(text: str, title: str, act: Callable[[], None]) -> QToolButton:
        button = QToolButton()
        button.setObjectName("quiet")
        button.setText(text)
        button.setToolTip(title)
        button.setAccessibleName(title)
        button.clicked.connect(lambda: act())
        return button

    def _remove(self, name: str) -> None:
        """With a way back: what it held is kept until the message goes."""

        def removed(kept: bytes) -> None:
            back = partial(self._run, partial(self._presets.put_back, name, kept), lambda _: self.read())
            self.offered.emit(tr("{name} was removed.").format(name=name), tr("Undo"), back)
            self.read()

        self._run(partial(self._presets.remove, name), removed)

    def _save(self) -> None:
        if self.name.text().strip():
            self.save_as(self.name.text().strip())

    def _ask_for_import(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, tr("Import a preset"), "", "TOML (*.toml);;* (*)")
        if name:
            self.import_file(Path(name))

    def _ask_for_export(self, name: str) -> None:
        file, _ = QFileDialog.getSaveFileName(self, tr("Export a preset"), f"{name}.toml", "TOML (*.toml)")
        if file:
            self.export(name, Path(file))

    def _run(self, work: Callable[[], object], done: Callable[..., None], failed: Callable[[BaseException], None] | None = None) -> None:
        self.bench.worker("presets").run(work, done, failed or (lambda error: self.offered.emit(shown_error(error), "", None)))
