"""Tells that the camera gives no more pictures, or black ones, and that it is back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.gui.live import Pulse
from app.gui.notice import Notice
from app.gui.told import told
from app.gui.words import tr
from rt.options import OnLost


class OutageTeller:
    """Once for each outage, so that a message that was closed stays closed; the camera's card counts down. Main thread."""

    def __init__(self, message: Notice, choose: Callable[[], None], changed: Callable[[], None]) -> None:
        """``choose``: lets the person choose another camera. ``changed``: cameras have come or gone."""
        self._message, self._choose, self._changed = message, choose, changed
        self._known = 0
        self._is_out = False
        self._warning = ""
        self._said = ""

    def begin(self) -> None:
        """Another line: what was of the one before is past."""
        self._known, self._is_out, self._warning = 0, False, ""
        self._take_back()

    def show_pulse(self, pulse: Pulse, policy: OnLost) -> None:
        outages = pulse.source.get("outages", [])
        is_out = "lost" in pulse.source
        is_new = len(outages) > self._known
        if is_out and (is_new or not self._is_out):
            self._say(gone_text(policy), tr("Choose another camera"), self._choose)
            self._changed()
        elif not is_out and (is_new or self._is_out):
            self._say(tr("The camera is back; it was away for {seconds} s.").format(seconds=round(away_s(outages[-1]))))
            self._changed()
        self._known, self._is_out = len(outages), is_out
        self._show_warning(pulse.source.get("warning", ""))

    def _show_warning(self, warning: str) -> None:
        """Until it is over, or closed."""
        if warning and warning != self._warning:
            self._say(warning, tr("Choose another camera"), self._choose)
        elif self._warning and not warning and self._said == self._warning:
            self._take_back()
        self._warning = warning

    def _say(self, text: str, offer: str = "", act: Callable[[], None] | None = None) -> None:
        self._said = text
        self._message.say(text, offer, act)

    def _take_back(self) -> None:
        if self._said and self._message.text() == told(self._said):
            self._message.say("")
        self._said = ""


def gone_text(policy: OnLost) -> str:
    """What happened, and what is seen meanwhile."""
    gone = tr("The camera gives no more pictures. ffrt tries again by itself and goes on when it is back.")
    frozen = tr("The last good picture is shown meanwhile.")
    return f"{gone} {frozen if policy is OnLost.FREEZE else tr('Nobody is seen meanwhile.')}"


def away_s(outage: Mapping[str, Any]) -> float:
    """Of one that is over."""
    return float(outage["back_s"] - outage["at_s"])


def lost_text(lost: Mapping[str, Any]) -> str:
    """``lost``: as ``rt.capture.reconnect`` describes it."""
    return tr("Away: next try in {seconds} s. {reason}").format(seconds=round(lost["retry_in_s"]), reason=told(lost["why"]))
