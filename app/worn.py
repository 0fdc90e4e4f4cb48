"""What every lane wears: the same look, drawn by parts of its own that are opened for its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app import build
from app.parts import Parts
from app.settings import Settings
from engines.detect.contract import Detector
from engines.device.contract import Device
from engines.device.host import HostDevice
from engines.landmarks.facemesh import FaceMesh
from engines.session import AUTO, ModelUse
from rt.options import Look

if TYPE_CHECKING:
    from engines.kit import OpenModel


class Worn:
    """Whoever made it closes it."""

    def __init__(self, settings: Settings, devices: Sequence[Device], detector: Detector, mesh: FaceMesh) -> None:
        """Loads models and prepares identities: seconds. Raises as ``build.look`` does; nothing is open then."""
        self._parts: list[Parts] = []
        try:
            self.looks: tuple[Look, ...] = tuple(self._look(settings, device, len(devices), detector, mesh) for device in devices)
            """One for each device."""
        except BaseException:  # raised on; what was opened for nothing is not kept
            self.close()
            raise

    @property
    def open_models(self) -> tuple[OpenModel, ...]:
        """The user's own that are open."""
        return tuple(model for parts in self._parts for model in parts.open_models)

    def uses(self) -> tuple[ModelUse, ...]:
        """All models that are open."""
        return tuple(use for parts in self._parts for use in parts.uses())

    def close(self) -> None:
        """May be called twice."""
        for parts in self._parts:
            parts.close()

    def _look(self, settings: Settings, device: Device, lanes: int, detector: Detector, mesh: FaceMesh) -> Look:
        with device.current():
            parts = build.parts(_of_its_own(settings, device) if lanes > 1 else settings)
            self._parts.append(parts)
            return build.look(settings, parts, detector, mesh)


def _of_its_own(settings: Settings, device: Device) -> Settings:
    """Beside a GPU's lane, that of the processor leaves the GPU alone."""
    if settings.look.runtime != AUTO or not isinstance(device, HostDevice):
        return settings
    return settings.model_copy(update={"look": settings.look.model_copy(update={"runtime": "ort"})})
