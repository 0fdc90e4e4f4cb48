"""Look: how the face is worn. A row a setting, each with its reset; what changes is seen at once while live."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton

from app.fetching import build_engine, fetch_model
from app.gui.cards.card import Bench, note, show_note
from app.gui.cards.part import PartCard
from app.gui.fields import ChecksField, Choice, ChoiceField, TextField
from app.gui.flow import Flow
from app.gui.told import told
from app.gui.words import later, tr
from app.gui.worker import shown_error
from app.models import Models, Offer
from app.offers import Part, models_of, parts_of, runtimes_here
from app.settings import LookSettings, Settings
from engines.face_regions import Region
from engines.family import Kind
from rt.options import Blending, Corner, OnLost

NAMES = {
    "mesh": later("Mesh (built in)"),
    "hands": later("Hands before the face"),
    "mouth": later("Mouth"),
    "blazeface-full": later("BlazeFace, near and far"),
    "blazeface-short": later("BlazeFace, near only"),
}
"""Of parts that come with the program; models bear their own."""

LOST = {
    OnLost.HOLD: later("Hold briefly, then blur"),
    OnLost.BLUR: later("Blur at once"),
    OnLost.FREEZE: later("Freeze the picture"),
    OnLost.SHOW: later("Show the real face"),
}

REGIONS = {
    Region.FACE: later("Skin, eyes and nose"),
    Region.MOUTH: later("Mouth"),
    Region.HAIR: later("Hair before the face"),
    Region.GLASSES: later("Glasses"),
    Region.EARS: later("Ears"),
    Region.HAT: later("Hat"),
    Region.NECK: later("Neck"),
}

PARSER = "bisenet"
"""The family of masks that tell regions apart."""

CORNERS = {
    Corner.TOP_LEFT: later("Top left"),
    Corner.TOP_RIGHT: later("Top right"),
    Corner.BOTTOM_LEFT: later("Bottom left"),
    Corner.BOTTOM_RIGHT: later("Bottom right"),
}

SEAMS = {
    Blending.SOFT: later("Soft edge"),
    Blending.SEAMLESS: later("Match colours along the edge"),
    Blending.POISSON: later("Merge gradients (Poisson)"),
    Blending.MULTIBAND: later("Merge in bands (multi-band)"),
}


class LookCard(PartCard):
    """Some of the look's settings."""

    offered = Signal(str, str, object)
    """A message, the words of what can be done about it, and what does it."""

    def __init__(self, heading: str, bench: Bench) -> None:
        super().__init__(heading, bench, "look")
        self.fetch: QToolButton | None = None
        self._offers: dict[str, tuple[Kind, str | None]] = {}
        bench.fetched.connect(self._reoffer, Qt.ConnectionType.QueuedConnection)

    def offer_parts(self, name: str, kind: Kind, none: str | None = None) -> None:
        """Fills the list in behind; ``none``: the words for no part at all. Those that are not here can be fetched by a button."""
        self._offers[name] = (kind, none)
        if self.fetch is None:
            self.fetch = QToolButton()
            self.fetch.setText(tr("Fetch a model…"))
            self.fetch.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
            self.fetch.setMenu(QMenu(self.fetch))
            self.fetch.hide()

        def offer(parts: tuple[Part, ...]) -> None:
            field = self.fields[name]
            assert isinstance(field, ChoiceField | ChecksField)
            choices = [Choice(part.name, part_name(part.name), _missing(part)) for part in parts]
            if isinstance(field, ChecksField):  # a list of boxes would be long of what cannot be checked; it is offered below
                choices = [choice for choice in choices if not choice.reason]
            field.offer([Choice(None, none), *choices] if none is not None else choices)
            self._offer_fetching([part.name for part in parts if part.missing])
            self.learn(parts)

        self.bench.worker("models").run(partial(parts_of, kind), offer, lambda error: self.said.emit(shown_error(error)))

    def _offer_fetching(self, names: list[str]) -> None:
        assert self.fetch is not None
        menu = self.fetch.menu()
        menu.clear()
        for name in names:
            menu.addAction(name, partial(self._ask_to_fetch, name))
        self.fetch.setVisible(bool(names))
        self.column.addWidget(self.fetch, 0, Qt.AlignmentFlag.AlignLeft)  # below all rows

    def _ask_to_fetch(self, name: str) -> None:
        """Its size and its licence first."""

        def ask(offer: Offer | None) -> None:
            if offer is None:
                self._reoffer()  # it has come meanwhile
            else:
                self.offered.emit(offer.describe(), tr("Fetch"), partial(self._fetch, name))

        def look() -> Offer | None:
            from engines.store.pull import mirrors_from_environment

            return Models().offer(name, mirrors_from_environment())

        self.bench.worker("offers").run(look, ask, lambda error: self.said.emit(shown_error(error)))

    def _fetch(self, name: str) -> None:
        fetch_model(self.bench.jobs, name, self.bench.fetched.emit)

    def _reoffer(self) -> None:
        for name, (kind, none) in self._offers.items():
            self.offer_parts(name, kind, none)

    def learn(self, parts: tuple[Part, ...]) -> None:
        """What ``offer_parts`` has found."""

    def offer_runtimes(self) -> None:
        """As ``offer_parts``."""

        def offer(parts: tuple[Part, ...]) -> None:
            field = self.fields["runtime"]
            assert isinstance(field, ChoiceField)
            field.offer([Choice("auto", tr("Automatic")), *(Choice(part.name, part.name, told(part.missing)) for part in parts)])

        self.bench.worker("models").run(runtimes_here, offer, lambda error: self.said.emit(shown_error(error)))


def look_cards(bench: Bench) -> list[LookCard]:
    """In the order of the page."""
    return [card(bench) for card in (_swap_card, EdgeCard, _sharpen_card, _movement_card, BadgeCard, EngineCard)]


def _swap_card(bench: Bench) -> LookCard:
    card = LookCard(tr("Swap"), bench)
    card.choice("swapper", tr("What draws the face"))
    card.slider("opacity", tr("Strength"), 0.01, tr("0 shows the person filmed, 1 the face worn."))
    card.slider("pixel_boost", tr("Finer by"), 1, tr("A neural swapper works on so many times its own size; the mesh needs none."))
    card.matters(["pixel_boost"], lambda look: look.swapper != "mesh")
    card.offer_parts("swapper", Kind.SWAPPER)
    return card


class EdgeCard(LookCard):
    """Where the face ends. Regions can be chosen where a mask that is worn tells them apart."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Edges"), bench)
        self.add("masks", ChecksField(tr("Stays yours"), bench.theme))
        self.regions = ChecksField(tr("The face is worn over"), bench.theme)
        self.regions.offer([Choice(region, tr(text)) for region, text in REGIONS.items()])
        self.add("regions", self.regions)
        self.needs = note()
        self.column.addWidget(self.needs)
        self.choice("blending", tr("Seam"), (Choice(value, tr(text)) for value, text in SEAMS.items()))
        hint = tr("Less ends the face more sharply, more blends it in from further inside.")
        self.slider("seam_width", tr("Width of the seam"), 0.05, hint)
        self.slider("colour_match", tr("Your colours"), 0.01, tr("0 keeps the face's own colours, 1 gives it your light and skin."))
        hint = tr("1 gives the whole face the mean colour and contrast of yours, whatever swapper drew it.")
        self.slider("colour_transfer", tr("Colour transfer"), 0.01, hint)
        self._families: dict[str, str] = {}
        self._masks: tuple[str, ...] = ()
        self.offer_parts("masks", Kind.MASK)

    def show_settings(self, settings: Settings) -> None:
        super().show_settings(settings)
        self._masks = settings.look.masks
        self._show_regions()

    def learn(self, parts: tuple[Part, ...]) -> None:
        self._families = {part.name: part.family for part in parts}
        self._show_regions()

    def _show_regions(self) -> None:
        """A mask that is given as a file may be of any family."""
        known = [self._families.get(name, PARSER) for name in self._masks]
        parsed = PARSER in known
        self.regions.setVisible(parsed or self.regions.is_changed)
        for box in self.regions.boxes.values():
            box.setEnabled(parsed)  # and not the button that sets them back
        words = tr("With a BiSeNet model as a mask you choose where the face is worn: hair, glasses, ears, hat, neck.")
        show_note(self.needs, "" if parsed else words)


def _sharpen_card(bench: Bench) -> LookCard:
    card = LookCard(tr("Sharpen"), bench)
    card.slider("sharpness", tr("Sharpness"), 0.01, tr("Fine detail of the face is drawn stronger."))
    card.choice("enhancer", tr("Enhancer"))
    card.slider("enhancer_opacity", tr("Enhancer's strength"), 0.01)
    card.slider("enhancer_weight", tr("Keep the face"), 0.01, tr("CodeFormer alone: 0 a fine picture, 1 the face that it was given."))
    card.matters(["enhancer_opacity", "enhancer_weight"], lambda look: look.enhancer is not None)
    card.offer_parts("enhancer", Kind.ENHANCER, tr("None"))
    return card


def _movement_card(bench: Bench) -> LookCard:
    card = LookCard(tr("Movement"), bench)
    card.slider("smoothing", tr("Steadiness"), 0.01, tr("0 follows every move at once, 1 steadies fully."))
    card.slider("max_faces", tr("Faces at once"), 1)
    card.choice("on_lost", tr("When the face is lost"), (Choice(value, tr(text)) for value, text in LOST.items()))
    card.slider("hold_frames", tr("Pictures to hold"), 1, tr("For so many pictures a face that is not found is predicted."))
    card.matters(["hold_frames"], lambda look: look.on_lost is OnLost.HOLD)
    return card


class BadgeCard(LookCard):
    """What tells the audience."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Badge"), bench)
        hint = tr("Shown to everybody while a face is worn.")
        longest = max(getattr(item, "max_length", 0) for item in LookSettings.model_fields["badge"].metadata)
        self.add("badge", TextField(tr("Text in a corner of the picture"), bench.theme, longest, tr("None; for example: AI face"), hint))
        self.choice("badge_corner", tr("Corner"), (Choice(corner, tr(text)) for corner, text in CORNERS.items()))
        self.matters(["badge_corner"], lambda look: bool(look.badge))


class EngineCard(LookCard):
    """What finds faces and what runs models; engines for a card of NVIDIA's are built from here."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Finding and running"), bench)
        self.choice("detector", tr("What finds faces"), hint=tr("Another one takes a short restart of the line."))
        self.slider("detect_every", tr("Look for new faces every … pictures"), 1)
        self.choice("runtime", tr("What runs models"), [Choice("auto", tr("Automatic"))])
        self.build = QPushButton(tr("Build engines"))
        self.build.setToolTip(tr("For an NVIDIA card, of every model that is chosen: minutes, once."))
        self.build.clicked.connect(self._build)
        self.column.addLayout(Flow(self.build))
        self.offer_parts("detector", Kind.DETECTOR)
        self.offer_runtimes()
        self._look = LookSettings()

    def show_settings(self, settings: Settings) -> None:
        super().show_settings(settings)
        self._look = settings.look

    def _build(self) -> None:
        self.bench.worker("models").run(partial(models_of, self._look), self._build_all, lambda error: self.said.emit(shown_error(error)))

    def _build_all(self, models: tuple[str, ...]) -> None:
        if not models:
            self.said.emit(tr("Nothing that is chosen needs an engine: what is built in runs on the processor."))
        for name in models:
            build_engine(self.bench.jobs, name)


def part_name(name: str) -> str:
    """For people, in their language."""
    return tr(NAMES[name]) if name in NAMES else name


def _missing(part: Part) -> str:
    return tr("Not on this computer yet.") if part.missing else ""
