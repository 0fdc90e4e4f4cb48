"""What a person reads in the terminal: printed here and by the commands (``cli`` and the ``*_cli`` files) alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.prompt import Confirm
from rich.table import Table

from engines.wording import counted

if TYPE_CHECKING:
    from app.doctor import Finding

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


ECONOMY_ROWS = 8
"""Of what was given up and came back; the report has more."""


class Events(logging.Handler):
    """What happened to an input or an output as a line of JSON on stderr, for whoever runs ffrt from a script."""

    def emit(self, record: logging.LogRecord) -> None:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        err.print(json.dumps({**vars(record)["facts"], "at": at, "message": record.getMessage()}), markup=False)


def _is_event(record: logging.LogRecord) -> bool:
    return hasattr(record, "facts")


def set_up_logging(verbose: bool, *, events: bool = False) -> None:
    """Log lines go to stderr; the answer of a command goes to stdout. ``events``: those that have ``facts`` are written as JSON."""
    if err.is_terminal:
        handler: logging.Handler = RichHandler(console=err, show_path=False, show_time=verbose, markup=False)
        words = "%(message)s"
    else:  # a file or a pipe: one line is one sentence
        handler, words = logging.StreamHandler(), "%(levelname)s: %(message)s"
    level = logging.INFO if verbose else logging.WARNING
    handlers = [handler]
    handler.setLevel(level)
    if events:
        handler.addFilter(lambda record: not _is_event(record))
        handlers.append(Events())
        handlers[-1].addFilter(_is_event)
    logging.basicConfig(level=logging.INFO if events else level, format=words, handlers=handlers, force=True)


def fail(message: object) -> None:
    """One clear sentence."""
    err.print(f"[bold red]ffrt:[/] {_plain(message)}")


def note(message: object) -> None:
    """Something a person should know, beside the answer."""
    err.print(f"[dim]{_plain(message)}[/]")


def print_json(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(out.encoding)
    except UnicodeEncodeError:  # in a C locale, or of a file name that is not UTF-8
        text = json.dumps(value, indent=2)
    out.print_json(text) if out.is_terminal else out.print(text, markup=False)


def print_report(report: dict[str, Any]) -> None:
    """The short table at the end of a run."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in _report_rows(report):
        table.add_row(name, text)
    out.print(table)


def _report_rows(report: dict[str, Any]) -> Iterable[tuple[str, str]]:
    source = report["input"]
    yield "input", str(source.get("granted", source.get("spec", "")))
    filmed = report["frames_out"] - report["stood_in"]
    yield "fps", f"{report['fps']:.2f} ({filmed} of {counted(report['frames_in'], 'frame')} in {report['seconds']:.1f} s)"
    if source.get("outages"):
        yield "away", _plain(_away_text(source["outages"], report["seconds"]))
    yield "dropped", ", ".join(f"{place} {count}" for place, count in report["dropped"].items())
    yield "age ms", _percentiles(report["age_ms"])
    for name, spent in report["stages_ms"].items():
        yield f"  {name}", _percentiles(spent)
    for name, lane in report["lanes"].items():
        if list(report["lanes"]) != ["host"]:  # the processor alone has nothing to add
            yield f"lane {name}", _plain(_lane_text(lane))
    for name, sink in report["sinks"].items():
        yield f"sink {name}", _sink_text(sink)
    for change in report["economy"]["changes"][-ECONOMY_ROWS:]:
        yield f"at {change['at_s']:.0f} s", _plain(f"{change['step']}: {'given up' if change['given_up'] else 'back'} ({change['why']})")
    yield from _model_rows(report["models"])
    if report["upgrade"] is not None:
        yield "upgrade", _plain(report["upgrade"]["what"])
    if "viewer" in report:
        viewer = report["viewer"]
        yield "viewer", f"{counted(viewer['frames'], 'frame')}, {viewer['unreadable']} unreadable, {viewer['out_of_order']} out of order"
        yield "  age ms", _percentiles(viewer["age_ms"])
    yield "lost", f"{counted(report['lost_frames'], 'frame')}; {counted(report['faces'], 'face')} seen"
    rss = report["rss_mb"]
    yield "cpu", f"{report['cores']:.2f} cores; memory {rss['end']:.0f} MB, peak {rss['peak']:.0f} MB"
    if report["error"]:
        yield "ended by", _plain(report["error"])


def _away_text(outages: Sequence[dict[str, Any]], seconds: float) -> str:
    """``2 times, 7.5 s in all: camera 0 was unplugged``, the last reason."""
    away_s = sum((seconds if one["back_s"] is None else one["back_s"]) - one["at_s"] for one in outages)
    times = "once" if len(outages) == 1 else f"{len(outages)} times"
    return f"{times}, {away_s:.1f} s in all: {outages[-1]['why']}"


def _model_rows(models: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    """A row a runtime: its models, and why not a better one."""
    rows: dict[tuple[str, str], list[str]] = {}
    for model in models:
        size = "" if model["memory_bytes"] is None else f" ({model['memory_bytes'] / 1e6:.0f} MB)"
        rows.setdefault((model["runtime"], model["why"]), []).append(_plain(model["model"]) + size)
    for (runtime, why), names in rows.items():
        yield "models", f"{', '.join(names)} on {_plain(runtime)}" + (f"; {_plain(why)}" if why else "")


def _percentiles(values: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.1f}" for name, value in values.items()) or "-"


def _lane_text(lane: dict[str, Any]) -> str:
    """``on, 300 frames, 0 failures, idle 41 %, 2.76 MB up and 2.76 MB down a frame``."""
    text = f"{lane['state']}, {counted(lane['frames'], 'frame')}, {counted(lane['failures'], 'failure')}"
    if "idle_share" in lane:
        text += f", idle {lane['idle_share']:.0%}, {lane['bytes_up'] / 1e6:.2f} MB up and {lane['bytes_down'] / 1e6:.2f} MB down a frame"
    return text + (f"; {lane['error']}" if "error" in lane else "")


def _sink_text(sink: dict[str, Any]) -> str:
    text = f"{sink['state']}, {counted(sink['frames'], 'frame')}, age {_percentiles(sink['age_ms'])}"
    pixel_age = sink.get("pixel_age_ms")
    if pixel_age:
        text += f"; by its pixels {_percentiles(pixel_age)}"
    return text + (f"; {_plain(sink['error'])}" if sink.get("error") else "")


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """A bar on stderr; what is yielded is called with (done, total or None where nobody knows, what)."""
    with Progress(*Progress.get_default_columns(), TextColumn("{task.fields[what]}"), console=err, transient=True) as bar:
        task = bar.add_task(title, total=None, what="")
        yield lambda done, total, what: bar.update(task, completed=done, total=total, what=_plain(what))


@contextmanager
def download(title: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """A bar of bytes on stderr; what is yielded is called with (done, total or None, server)."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[server]}"), console=err, transient=True) as bar:
        task = bar.add_task(_plain(title), total=None, server="")
        yield lambda done, total, server: bar.update(task, completed=done, total=total, server=_plain(server))


def ask_secret(question: str) -> str:
    """Asks on the terminal, and does not show what is typed."""
    return err.input(_plain(question), password=True)


def confirm(question: str) -> bool:
    """Asks on the terminal; no is meant by silence."""
    return Confirm.ask(question, console=err, default=False)


CHECKED_BY: Mapping[str | None, str] = {
    "sha256": "its SHA-256",
    "crc32": "the CRC32 that its publisher gives; the SHA-256 of what came is kept, and `ffrt models verify` compares with it",
    None: "nothing that is known: get it from its publisher, then `ffrt models import FILE`",
}
"""By ``checked_by`` of a model's row."""


def print_models(rows: Sequence[dict[str, Any]]) -> None:
    """A line a model; those that are here are marked, with the first digits of their hash."""
    table = Table(box=None, pad_edge=False)
    for title in ("", "name", "kind", "family", "MB", "commercial", "SHA-256"):
        table.add_column(title, justify="right" if title == "MB" else "left", no_wrap=True)
    for row in rows:
        size = row["size"] or row["about_bytes"]
        is_doubtful = "licence" in row["unverified"] and row["commercial"] != "unknown"
        known = row["sha256"][:8] if row["sha256"] else "in part" if row["sha256_short"] else "unknown"
        commercial = row["commercial"] + ("?" if is_doubtful else "")
        megabytes = f"{size / 1e6:.0f}" if size else "?"
        mark = "here" if row["present"] else ""
        table.add_row(*(_plain(cell) for cell in (mark, row["name"], row["kind"], row["family"], megabytes, commercial, known)))
    out.print(table)
    if any("licence" in row["unverified"] and row["commercial"] != "unknown" for row in rows):
        note("yes? and no? are not verified by ffrt: ask the publisher. `ffrt models show NAME` says more.")


def print_model(row: dict[str, Any]) -> None:
    """All that is known of one model, a line each: an address is of use only whole."""
    told = {} if row.get("size") is None else {"size": counted(row["size"], "byte")}
    if row.get("about_bytes"):
        told["size"] = f"about {row['about_bytes'] / 1e6:.0f} MB"
    if row["sha256"] is None:
        told["sha256"] = "not known" if not row["sha256_short"] else f"known in part: {' or '.join(row['sha256_short'])}"
    told["checked_by"] = CHECKED_BY[row["checked_by"]]
    for name, value in (row | told).items():
        if name in ("sha256_short", "about_bytes"):  # said with the others
            continue
        for item in value if isinstance(value, list) else [value]:
            text = "-" if item is None else item if not isinstance(item, bool) else "yes" if item else "no"
            out.print(f"[bold]{name.replace('_', ' '):<10}[/] {_plain(text)}")


def print_lines(lines: Sequence[str], none: str) -> None:
    """One each; ``none`` is said beside the answer where there is none."""
    for line in lines:
        out.print(_plain(line))
    if not lines:
        note(none)


def print_text(text: str) -> None:
    """As it is, but for control characters."""
    out.print(_plain(text.rstrip("\n")))


def print_state(state: dict[str, Any]) -> None:
    """Of an ffrt that is controlled: a line a fact."""
    worn = state["face"] or (f"{state['photos']} photo(s)" if state["photos"] else "nobody")
    rows = {"state": state["state"], "face": worn, "preset": state["preset"], "input": state["input"], "video": state["video"]}
    rows["input error"] = state["input_error"]
    if state["others"] != "swap":
        rows["others"] = state["others"]
    rows |= {f"person {one['number']}": _person_text(one) for one in state["people"]}
    rows |= {f"output {one['name']}": ", ".join(filter(None, (one["state"], one["error"]))) for one in state["outputs"]}
    for name, value in {**rows, "error": state["error"]}.items():
        if value is not None:
            out.print(f"[bold]{_plain(name)}[/] {_plain(value)}")


def _person_text(person: dict[str, Any]) -> str:
    """``swap, wears Hopper; not in sight; perhaps person 1``"""
    wears = f", wears {person['face'] or 'photo(s)'}" if person["own"] and person["wear"] == "swap" else ""
    doubts = "".join(f"; perhaps person {number}" for number in person["perhaps"])
    return f"{person['wear']}{wears}{'' if person['in_sight'] else '; not in sight'}{doubts}"


def print_faces(rows: Iterable[dict[str, Any]]) -> None:
    """A line a face: its photos, and what would make a poor swap of them."""
    table = Table("name", "photos", "hints", "", box=None, pad_edge=False)
    for row in rows:
        hints = sorted({hint for photo in row["photos"] for hint in photo["hints"]})
        there = sum(photo["there"] for photo in row["photos"])
        photos = str(there) if there == len(row["photos"]) else f"{there} of {len(row['photos'])}"
        kind = "favourite" if row["favourite"] else "comes with ffrt" if row["built_in"] else ""
        table.add_row(_plain(row["name"]), photos, " ".join(hints), _plain(row["problem"]) or kind)
    out.print(table)


def print_addresses(rows: Sequence[dict[str, Any]]) -> None:
    """A line an address, without its key."""
    table = Table("name", "address", "key", box=None, pad_edge=False)
    for row in rows:
        table.add_row(_plain(row["name"]), _plain(row["shown"]), "in the keyring" if row["secret"] else "none")
    if rows:
        out.print(table)
    else:
        note("no address is saved yet; `ffrt addresses add NAME` saves one")


def print_verified(rows: Iterable[dict[str, Any]]) -> None:
    """A line a model: whole or what is wrong."""
    for row in rows:
        mark = "[green]ok     [/]" if row["ok"] else "[red]damaged[/]"
        out.print(f"{mark} [bold]{_plain(row['name'])}[/] {row['sha256'][:8]}" + (f": {_plain(row['problem'])}" if row["problem"] else ""))


def print_quality(result: dict[str, Any]) -> None:
    """The numbers over all pairs; the report holds those of each."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for part in ("identity", "landmarks"):
        for name, value in result[part].items():
            if not isinstance(value, dict):
                table.add_row(f"{part}.{name}", "-" if value is None else f"{value:.4g}")
    for name in ("jitter_px", "flicker", "flicker_original", "seam"):
        table.add_row(name, "-" if result[name] is None else f"{result[name]:.4g}")
    table.add_row("pairs", f"{len(result['pairs'])}; without {counted(len(result['skipped']), 'file')}")
    out.print(table)


def print_costs(result: dict[str, Any]) -> None:
    """A line a part."""
    table = Table("part", "picture", "face px", "median ms", "p95 ms", box=None, pad_edge=False)
    for cost in result["costs"]:
        table.add_row(cost["part"], cost["picture"], str(cost["face_px"]), f"{cost['median_ms']:.2f}", f"{cost['p95_ms']:.2f}")
    out.print(table)


def print_lanes(result: dict[str, Any]) -> None:
    """A line a run."""
    table = Table("lanes", "fps", "gain", "age p50 ms", "age p95 ms", "late", "frames of each", box=None, pad_edge=False)
    for run in result["runs"]:
        age, each = run["age_ms"], ", ".join(map(str, run["frames"].values()))
        numbers = (f"{run['fps']:.2f}", f"{run['gain']:.2f}", f"{age['p50']:.1f}", f"{age['p95']:.1f}", str(run["late"]))
        table.add_row(str(run["lanes"]), *numbers, each)
    out.print(table)


def print_startup(result: dict[str, Any]) -> None:
    """A line a step."""
    from app.bench.start import STEPS

    table = Table("seconds until", "median", "longest", box=None, pad_edge=False)
    for name, what in STEPS.items():
        times = result["startup_s"][name]
        table.add_row(what, f"{times['median']:.2f}", f"{times['max']:.2f}")
    out.print(table)


def print_window_costs(result: dict[str, Any]) -> None:
    """A line a number, beside what is to be kept."""
    limits = result["limits"]
    table = Table("the window", "median", "p95", "at most", box=None, pad_edge=False)
    for name, what in (("lane_ms", "time of the lane, ms"), ("sink_ms", "time of its own thread, ms"), ("added_age_ms", "added age, ms")):
        found = result[name]
        table.add_row(what, f"{found.get('p50', 0):.2f}", f"{found.get('p95', 0):.2f}", f"{limits[name]:g}" if name in limits else "")
    table.add_row("share of a core", f"{result['share_of_a_core']:.1%}", "", f"{limits['share_of_a_core']:.0%}")
    table.add_row("shown after, s", f"{result['window_s']:.2f}", "", f"{limits['window_s']:g}")
    table.add_row("longest block, ms", f"{result['watchdog']['longest_block_ms']:.0f}", "", f"{result['watchdog']['limit_ms']:g}")
    out.print(table)
    note(f"{counted(result['pictures'], 'picture')}, drawn by {result['drawing']}")


def print_findings(findings: Iterable[Finding]) -> None:
    """What the doctor found, each with the mend."""
    marks = {"ok": "[green]ok     [/]", "warning": "[yellow]warning[/]", "missing": "[red]missing[/]"}
    for finding in findings:
        out.print(f"{marks[str(finding.state)]} [bold]{finding.name}[/]: {_plain(finding.what)}")
        if finding.mend:
            out.print(f"        → {_plain(finding.mend)}")


def print_cameras(cameras: Iterable[Any]) -> None:
    """A line a camera, its modes below."""
    cameras = list(cameras)
    if not cameras:
        out.print("no camera was found; `--input synthetic:` needs none, and `ffrt doctor` says more")
    for camera in cameras:
        lasting = f"; the same under any number: {_plain(camera.link)}" if camera.link else ""
        out.print(f"[bold]{camera.index}[/] {_plain(camera.name)} ({camera.path}{lasting})")
        for mode in camera.modes:
            out.print(f"    {mode.width}x{mode.height} {mode.fourcc} {mode.fps:g} fps", markup=False)


def print_engine(result: dict[str, Any]) -> None:
    """What was built."""
    built = f"built in {result['seconds']:.1f} s" if result["built"] else "was built before"
    chips = ", ".join(result["targets"]) or "this GPU"
    out.print(f"{_plain(result['facts'].get('model', ''))} {result['precision']} for {result['runtime']} ({chips}): {built}", markup=False)
    out.print(f"{result['bytes'] / 1e6:.1f} MB, {result['file']}", markup=False)
    for name, shape in result["usual_shapes"].items():
        note(f"the file leaves the size of {_plain(name)} open: built for {shape}, which its family uses live; --shape asks for another")
    if "graph_parity" in result["facts"]:
        _print_verdict("compared on the processor", result["facts"]["graph_parity"])
        note("on a machine with the GPU, `ffrt engines verify-parity MODEL --runtime " + result["runtime"] + "` proves the engine itself")


def print_engines(engines: Iterable[dict[str, Any]], summary: str) -> None:
    """A line an engine."""
    table = Table(box=None, pad_edge=False)
    for heading in ("key", "model", "runtime", "precision", "for", "batch", "MB", "proof", ""):
        table.add_column(heading)
    for engine in engines:
        table.add_row(
            engine["key"][:12],
            _plain(engine["facts"].get("model", "")),
            f"{engine['runtime']} {engine['runtime_version']}",
            engine["precision"],
            " ".join(engine["targets"]) or ("processor" if engine["runtime"] == "ort" else "portable"),
            _batch_text(engine["profiles"]),
            f"{engine['bytes'] / 1e6:.1f}",
            engine["proof"],
            _plain(engine["stale"]),
        )
    out.print(table)
    out.print(summary)


def print_removed(removed: Iterable[dict[str, Any]], summary: str) -> None:
    """A line an engine that is gone."""
    for engine in removed:
        out.print(f"{engine['key'][:12]}: {engine['why']}", markup=False)
    out.print(f"removed {summary}")


def print_parity(result: dict[str, Any]) -> None:
    """The numbers of every verdict."""
    for verdict in result["verdicts"]:
        _print_verdict(verdict["what"], verdict)


def _print_verdict(what: str, verdict: dict[str, Any]) -> None:
    mark = "[green]passed[/]" if verdict["passed"] else "[red]refused[/]"
    out.print(f"{mark} {_plain(what)}: {verdict['candidate']} against {verdict['reference']}, {verdict['crops']} crops")
    for output in verdict["outputs"]:
        words = f"worst {output['worst']:.4g}, mean {output['mean']:.4g}, limit {output['limit']:g}"
        out.print(f"    {output['name']}: {output['measure']} {words if output['finite'] else 'NaN or infinity'}", markup=False)


def _batch_text(profiles: Iterable[dict[str, Any]]) -> str:
    """Of the input that varies most: ``1..8``."""
    ranges = [(profile["low"][0], profile["high"][0]) for profile in profiles if profile["low"]]
    low, high = max(ranges, key=lambda pair: pair[1] - pair[0], default=(1, 1))
    return str(low) if low == high else f"{low}..{high}"


def _plain(text: object) -> str:
    """Square brackets in names and messages are not markup; nor are control characters, which would command the terminal."""
    shown = (letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in str(text))
    return "".join(shown).replace("[", "\\[")
