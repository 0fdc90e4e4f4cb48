"""Devices: what works on pictures, how much of a GPU's memory that may take, and what encodes. Where there is no GPU, why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QCheckBox

from app.gui.cards.card import Bench, note, row, show_note
from app.gui.cards.part import PartCard
from app.gui.fields import Choice, ChoiceField, Field
from app.gui.live import LiveState
from app.gui.theme import Theme
from app.gui.told import told
from app.gui.words import later, tr
from app.gui.worker import shown_error
from app.settings import Settings

PROCESSOR, MODELS, WHOLE = "host", "cuda", "cuda-kernels"
"""Kinds of devices: what a GPU does as ``cuda:0``, and as ``cuda-kernels:0``."""

INSTEAD = ", or choose --device host"
"""What is advised on the command line, and goes without saying here."""

MEMORY_MB = (2_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000)

ENCODERS = {
    "auto": later("A GPU's where it opens"),
    "libx264": later("H.264 by the processor"),
    "h264_nvenc": later("H.264 by an NVIDIA GPU"),
    "libx265": later("HEVC by the processor"),
    "hevc_nvenc": later("HEVC by an NVIDIA GPU"),
}


@dataclass(frozen=True, slots=True)
class Gpus:
    """What was found."""

    count: int = 0
    why: str = ""
    """There is none; empty where there is."""


def look_for_gpus() -> Gpus:
    """Tenths of a second: behind."""
    from engines.device.cuda_probe import find_gpus
    from engines.device.kinds import problem

    return Gpus(find_gpus()[0], problem(f"{MODELS}:0").removesuffix(INSTEAD))


def look_for_encoders() -> dict[str, str]:
    """Encoder → why it does not open here; empty where it does. Tenths of a second: behind."""
    from rt.frame import VideoFormat
    from rt.sinks.encoders import encoders, refusal

    return {name: refusal(name, VideoFormat(1280, 720, 30), encoders[name].live) for name in encoders}


class DevicesField(Field):
    """Any number of them, at least one; and whether GPUs compose pictures too."""

    def __init__(self, theme: Callable[[], Theme]) -> None:
        super().__init__(tr("What works on pictures"), theme, tr("Each takes the next picture when it is the first to be done with one."))
        self.column.addLayout(row(self.label, self.reset))
        self.boxes: dict[str, QCheckBox] = {}
        self.composes = QCheckBox(tr("GPUs compose pictures, too"))
        hint = tr("The picture goes to the GPU and comes back once, or not at all where an NVIDIA encoder takes it there.")
        self.composes.setToolTip(hint)
        self.composes.clicked.connect(self._choose)
        self.column.addWidget(self.composes)
        self._value: tuple[str, ...] = (PROCESSOR,)
        self._count = 0

    def offer(self, count: int) -> None:
        """``count``: of the GPUs that are here."""
        self._count = count
        self.show_value(self._value, self.default)

    def show_value(self, value: Sequence[str], default: Sequence[str]) -> None:
        super().show_value(tuple(value), default)
        self._value = tuple(value)
        kinds = [_parts(name) for name in value]
        named = [f"{MODELS}:{number}" if kind in (MODELS, WHOLE) else kind for kind, number in kinds]
        for name in dict.fromkeys([PROCESSOR, *(f"{MODELS}:{number}" for number in range(self._count)), *named]):
            if name not in self.boxes:
                self._add(name)
        for name, box in self.boxes.items():
            box.setChecked(name in named)
        self.composes.setChecked(any(kind == WHOLE for kind, _ in kinds))
        self.composes.setEnabled(any(kind in (MODELS, WHOLE) for kind, _ in kinds))

    def _add(self, name: str) -> None:
        kind, number = _parts(name)
        box = QCheckBox({PROCESSOR: tr("Processor"), MODELS: tr("NVIDIA GPU {number}").format(number=number)}.get(kind, name))
        box.setAccessibleName(f"{self.title}: {box.text()}")
        box.clicked.connect(self._choose)
        self.column.insertWidget(1 + len(self.boxes), box)
        self.boxes[name] = box

    def _choose(self) -> None:
        kind = WHOLE if self.composes.isChecked() else MODELS
        chosen = [name.replace(f"{MODELS}:", f"{kind}:") for name, box in self.boxes.items() if box.isChecked()]
        self.wished.emit(tuple(chosen) or (PROCESSOR,))


def _parts(name: str) -> tuple[str, str]:
    kind, _, number = name.partition(":")
    return kind, number


class DevicesCard(PartCard):
    """Main thread. Another choice while live takes a new run."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Devices"), bench, "run")
        self.devices = DevicesField(bench.theme)
        self.add("devices", self.devices)
        sizes = (Choice(size, tr("{size} GB").format(size=size // 1000)) for size in MEMORY_MB)
        hint = tr("Of each GPU. Where it ends, the enhancer, the swapper's size and faces are given up, in this order.")
        self.choice("gpu_memory_mb", tr("Memory it may take"), (Choice(0, tr("All there is")), *sizes), hint)
        self.why = note()
        self.column.addWidget(self.why)
        self._gpus = Gpus()
        self.show_gpus(self._gpus)
        bench.worker("devices").run(look_for_gpus, self.show_gpus, lambda error: self.said.emit(shown_error(error)))

    def show_gpus(self, gpus: Gpus) -> None:
        """What there is, and where nothing is, why."""
        self._gpus = gpus
        self.devices.offer(gpus.count)
        show_note(self.why, tr("Only the processor: {why}").format(why=told(gpus.why)) if gpus.why else "")
        self._show_rows()

    def show_settings(self, settings: Settings) -> None:
        super().show_settings(settings)
        self._show_rows()

    def _show_rows(self) -> None:
        """What can be chosen, and what can be set back."""
        for field in self.fields.values():
            field.setVisible(self._gpus.count > 0 or field.is_changed)


class EncoderCard(PartCard):
    """Main thread. Of streams and recordings: chosen before they begin, since another one in the middle would begin them anew."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Encoder"), bench, "output")
        self.choice("encoder", tr("Of streams and recordings"), hint=tr("Few servers take HEVC over RTMP."))
        self.why = note()
        self.column.addWidget(self.why)
        self.show_refusals({})
        bench.worker("devices").run(look_for_encoders, self.show_refusals, lambda error: self.said.emit(shown_error(error)))

    def show_state(self, state: LiveState) -> None:
        self.setEnabled(state is LiveState.IDLE)

    def show_refusals(self, refused: dict[str, str]) -> None:
        """``refused``: encoder → why it does not open here, empty where it does."""
        field = self.fields["encoder"]
        assert isinstance(field, ChoiceField)
        field.offer([Choice(name, tr(text), told(refused.get(name, ""))) for name, text in ENCODERS.items()])
        whys = dict.fromkeys(told(why) for why in refused.values() if why)
        show_note(self.why, "\n".join(tr("Not all can be chosen: {why}").format(why=why) for why in whys))
