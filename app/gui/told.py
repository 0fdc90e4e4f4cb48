"""Sentences that cameras, outputs and drivers say in English, in the language of the window.

Parts below the window know no languages. What they say is recognised by its fixed words; what is filled in between is kept, and is
translated in its turn where it is a sentence too. What is not known here stays as it was said.
"""

from __future__ import annotations

import re
from functools import cache

from app.gui.words import later, tr

CAMERA = (
    later("camera {name} does not exist; {what}"),
    later("no camera is called {name}; {what}"),
    later("no camera was found on this machine; plug one in, or use --input synthetic:"),
    later("there are {cameras}"),
    later("camera {name} may not be used by this user; run `sudo usermod -aG video $USER` and log in again"),
    later("camera {name} cannot be opened ({tried}); {what}"),
    later("camera {name} opened and gave no picture for {seconds} s; {what}"),
    later("camera {name} gave a picture that cannot be decoded; try another --fourcc"),
    later("camera {name} stopped delivering; {what}"),
    later("camera {name} was unplugged; plug it in again, or choose another"),
    later("camera {name} ({kind}) is not plugged in; plug it in again, or choose another"),
    later("camera {name} gives black pictures; open its shutter, or close the program that holds it"),
    later("it is in use by {programs}; close it there, or choose another camera"),
    later("check its cable and whether another program has taken it"),
    later("close other programs, or try another size"),
    later("close other programs that use it; {what}"),
    later("{why}; it did not come back within {seconds} s"),
    later("the synthetic camera was unplugged, as its SPEC says; choose another input, or leave unplug out"),
    later("{address} went off the air; check whoever sends it, and the network"),
    later("{address} cannot be opened: {why}; check the address and that it is on the air"),
    later("nothing came within {seconds} s"),
    later("{address} was not opened: it was called off; start again to open it"),
    later("the input {file} does not exist; give a video file, an address, a camera (`ffrt cameras` lists them) or synthetic:"),
    later("the input {file} is a folder; give a video file, an address, a camera or synthetic:"),
    later("the input {file} is empty (0 bytes); give the original file"),
    later("{file} is no video that can be read: {why}; give a video file, an address, a camera or synthetic:"),
    later("{file} is a text file; give a video file, an address, a camera or synthetic:"),
    later("{file} holds no picture that can be decoded; give another file"),
    later("{file} has no video stream; give a file with pictures"),
)

EXPOSURE = (
    later("automatic"),
    later("this camera offers no automatic exposure"),
    later("this camera lets nobody set its exposure"),
    later("cannot be set on this system by this version"),
    later("the driver refused it ({why})"),
)

DRIVER = (
    later("pyvirtualcam is not installed"),
    later("run `pip install 'ffrt[vcam]'` (GPLv2)"),
    later("pyvirtualcam {version}; the driver is tried when it is used"),
    later("v4l2loopback is not loaded"),
    later("{devices} without exclusive_caps: Chrome does not list it"),
    later("reload v4l2loopback with exclusive_caps=1"),
    later("run `sudo apt install v4l2loopback-dkms`, then `sudo modprobe v4l2loopback exclusive_caps=1 card_label=ffrt`"),
    later("install OBS Studio, which brings the OBS Virtual Camera, or UnityCapture"),
    later("install OBS Studio and start its virtual camera once"),
    later("install a virtual camera driver"),
)

OUTPUT = (
    later("the virtual camera {device} was given, which is the input: it would film itself; choose another of the two"),
    later("the virtual camera needs pyvirtualcam, which is not installed; run `pip install 'ffrt[vcam]'`"),
    later("no virtual camera could be opened ({why}); {mend}"),
    later("it is in use by {programs}; close it there, or choose another device"),
    later("choose one that no other program sends to: {devices}"),
    later("the virtual camera {name} stopped taking pictures: {why}"),
    later("cannot stream to {address}: its certificate is not trusted; check the host's name and this machine's clock"),
    later("cannot stream to {address}: the host {host} is not known; check the address and the network"),
    later("cannot stream to {address}: the server did not take data for {seconds} s"),
    later("cannot stream to {address}: nothing listens there; start the server or check host and port"),
    later("cannot stream to {address}: {why}; check the server and the stream key"),
    later("{scheme} needs the program ffmpeg, which is not on the PATH; install it (apt install ffmpeg)"),
    later("recording to {file} ended: the disk is full; what was recorded until now stays playable"),
    later("cannot record to {file}: there is no folder {folder}; make it first"),
    later("cannot record to {file}: the file exists; give another name, or --overwrite to replace it"),
    later("cannot record to {file}: {why}; check the folder's rights and the disk"),
)

DEVICES = (
    later("the package cuda-python is not installed; run `pip install 'ffrt[gpu]'`"),
    later("no NVIDIA GPU with a driver was found ({why}); install NVIDIA's driver"),
    later("the machine refuses its GPU; is NVIDIA's driver installed?"),
    later("it does not open ({why})"),
    later("memory is tried again"),
)

RUNTIMES = (
    later("not {runtime}: {why}"),
    later("the package tensorrt-rtx is not installed; run `pip install 'ffrt[engines]'`"),
    later("the package tensorrt (10 or 11) is not installed; run `pip install tensorrt --extra-index-url https://pypi.nvidia.com`"),
    later("no NVIDIA GPU and driver were found ({why}); install the driver, or choose another runtime"),
    later(
        "ONNX Runtime {version} as it is installed has no {device} (it has {others}); "
        "install {package} in place of onnxruntime (it needs {needs})"
    ),
    later("no engine of {model} is built; run `{command}`"),
    later("the engine of {model} at {precision} differs too much from fp32; build it at a higher precision"),
    later("the engine of {model} is not proven yet; run `{command}` on this machine"),
    later("embedded models always run on the processor: each takes it less than a way to a GPU and back"),
)
"""Why something does not run where it would run faster."""

KNOWN = (*CAMERA, *EXPOSURE, *DRIVER, *OUTPUT, *DEVICES, *RUNTIMES)
"""Those with more fixed words stand before those that would fit too."""


def told(sentence: str) -> str:
    """``sentence`` in the language of the window. Main thread."""
    if not sentence:  # as a notice begins: a window that opens waits for no form
        return ""
    for template, form in _forms():
        found = form.fullmatch(sentence)
        if found is not None:
            return tr(template).format(**{name: told(value) for name, value in found.groupdict().items()})
    return sentence


def told_reasons(sentence: str) -> str:
    """The same of ``engines.session.RuntimeChoice.reasons``, which are several, each with its own semicolons."""
    return "; ".join(told(reason) for reason in re.split(r"; (?=not [\w-]+: )", sentence))


@cache
def _forms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, re.compile(_form(template), re.DOTALL)) for template in KNOWN)


def _form(template: str) -> str:
    """A regular expression that ``template`` fits with anything filled in."""
    parts = re.split(r"(\{\w+\})", template)
    return "".join(f"(?P<{part[1:-1]}>.+?)" if part.startswith("{") else re.escape(part) for part in parts)
