"""What becomes of the camera's picture before a face is looked for: for everybody who sees it."""

from __future__ import annotations

from functools import partial

from app.gui.cards.card import Bench, note, show_note
from app.gui.cards.part import PartCard
from app.gui.fields import Choice, ChoiceField, Field, SidesField, SliderField, SwitchField
from app.gui.live import LiveState, Pulse
from app.gui.told import told
from app.gui.words import later, tr
from app.gui.worker import shown_error
from app.settings import Settings
from rt.capture.camera import offered_exposure
from rt.capture.exposure import Exposure
from rt.options import CropFit

FITS = {CropFit.FILL: later("Enlarge what is left"), CropFit.PART: later("Make the picture smaller")}

FIXED_MS, FIXED_MAX_MS = 16, 100
"""What a fixed exposure begins with: half of a picture's time at 30 a second; and where the slider ends."""


class ExposureField(Field):
    """The camera's own choice, or a time."""

    is_dragged = True

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Exposure"), bench.theme)
        self.mode = ChoiceField(self.title, bench.theme)
        self.time = SliderField(tr("Milliseconds"), bench.theme, 1, FIXED_MAX_MS, 1, tr("Longer is brighter, and blurs what moves."))
        self.mode.wished.connect(self.wished)
        self.time.wished.connect(lambda ms: self.wished.emit(float(ms)))
        self.time.settled.connect(self.settled)
        self.column.addWidget(self.mode)
        self.column.addWidget(self.time)
        self.offer(None)

    def offer(self, exposure: Exposure | None) -> None:
        """``exposure``: what the camera has; None where nobody knows."""
        lacks = tr("This camera does not offer it.")
        automatic = "" if exposure is None or exposure.automatic is not None else lacks
        fixed = "" if exposure is None or exposure.fixed else lacks
        self.mode.offer(
            [
                Choice(None, tr("As the camera is set")),
                Choice(0.0, tr("Automatic"), automatic),
                Choice(float(FIXED_MS), tr("Fixed"), fixed),
            ]
        )

    def show_value(self, value: float | None, default: float | None) -> None:
        self.mode.show_value(float(FIXED_MS) if value else value, default)
        self.time.setVisible(bool(value))
        if value:
            self.time.show_value(value, FIXED_MS)


class FramingCard(PartCard):
    """Main thread. Mirror, turn, crop; exposure where there is a shutter."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Picture"), bench, "input")
        self._spec = ""
        hint = tr("For everybody who sees it. The button below the picture mirrors what you see alone.")
        self.add("mirror", SwitchField(tr("Mirror the picture"), bench.theme, hint))
        self.choice("rotate", tr("Turn"), (Choice(turn, f"{turn}°") for turn in (0, 90, 180, 270)))
        self.add("crop", SidesField(tr("Cut away"), bench.theme))
        self.choice("crop_fit", tr("After that"), (Choice(fit, tr(text)) for fit, text in FITS.items()))
        self.exposure = ExposureField(bench)
        self.add("exposure_ms", self.exposure)
        self.granted = note()
        self.column.addWidget(self.granted)

    def show_settings(self, settings: Settings) -> None:
        super().show_settings(settings)
        self.fields["crop_fit"].setVisible(any(settings.input.crop))
        if settings.input.spec != self._spec:
            self._spec = settings.input.spec
            self._ask()

    def show_state(self, state: LiveState) -> None:
        if state is not LiveState.LIVE:
            show_note(self.granted, "")
        else:
            self._ask()  # a camera that was not there may be there now

    def show_pulse(self, pulse: Pulse) -> None:
        granted = [tr("Exposure: {what}").format(what=told(pulse.source["exposure"]))] if "exposure" in pulse.source else []
        size = [tr("Its size now: {mode}").format(mode=pulse.video)] if "framing" in pulse.source else []
        show_note(self.granted, "\n".join(granted + size))

    def _ask(self) -> None:
        """The camera, behind, for what it offers."""
        spec = self._spec

        def offer(exposure: Exposure | None) -> None:
            if spec == self._spec:
                self.exposure.offer(exposure)
                self.exposure.setVisible(exposure is not None)

        self.bench.worker("devices").run(partial(offered_exposure, spec), offer, lambda error: self.said.emit(shown_error(error)))
