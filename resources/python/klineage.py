# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a KLineage workspace: lineages, trials, cards and runs. One file, standard library only, Python 3.11 or newer.

Copy it beside a notebook, or put this folder into sys.path:

    import klineage
    workspace = klineage.Workspace("/path/to/workspace")
    for row in workspace.lineage("softmax/pocl").table():
        print(row["id"], row["latency_ns"], row["speedup_to_parent"])
    for run in workspace.runs():
        print(run.id, run.ending, run.trajectory())

It only reads, and it computes nothing that a trial has not recorded but ratios of medians. Each object has the file's own keys in
`raw`; what they mean is in the README.md of core/lineage, core/trial, core/skills and core/run. A line that cannot be read (a kill
can cut the last one short) is left out and said in `notices`; a file that cannot be read at all raises ReadError.
"""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator

__all__ = ["Workspace", "Workload", "Lineage", "State", "Attempt", "Trial", "Interval", "Comparison", "Card", "Run",
           "Exchange", "ReadError", "write_csv"]


class ReadError(Exception):
    """A file is missing, or is none of a workspace's."""


@dataclass(frozen=True)
class Interval:
    """A median with its 95 % interval."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(raw: dict | None) -> Interval | None:
        return Interval(raw["value"], raw["low"], raw["high"]) if raw else None


@dataclass(frozen=True)
class Comparison:
    """What a trial's candidate is against its parent or a reference: speedup is T_other / T_candidate from paired rounds."""

    against: str
    speedup: Interval | None
    other_ns: float | None
    change: str
    raw: dict = field(repr=False)


@dataclass(frozen=True)
class Trial:
    """A line of trials.jsonl."""

    id: str
    time: str
    workload: str
    candidate: str  # sha-256 of the candidate file
    parent: str  # of the parent's; "" without one
    status: str  # correct compile_error wrong unsafe suspect timeout crash unavailable
    reason: str
    message: str
    platform: str
    device: str
    latency_ns: Interval | None
    raw: dict = field(repr=False)

    @staticmethod
    def of(raw: dict) -> Trial:
        verdict = raw["verdict"]
        environment = raw["environment"]
        return Trial(raw["id"], raw["time"], raw["workload"], raw["candidate"], raw.get("parent", ""), verdict["status"],
                     verdict["reason"], verdict.get("message", ""), environment["platform"], environment["device"],
                     Interval.of(raw.get("latency_ns")), raw)

    @property
    def comparisons(self) -> list[Comparison]:
        return [Comparison(c["against"], Interval.of(c.get("speedup")), c.get("other_ns"), c.get("change", ""), c)
                for c in self.raw["verdict"].get("comparisons", [])]

    def comparison(self, against: str) -> Comparison | None:
        """The one against "parent" or a reference by its name."""
        return next((c for c in self.comparisons if c.against == against), None)

    @property
    def reference(self) -> Comparison | None:
        """The one with the reference that was fastest beside the candidate."""
        others = [c for c in self.comparisons if c.against != "parent" and c.speedup and c.other_ns]
        return min(others, key=lambda c: c.other_ns, default=None)

    @property
    def metrics(self) -> dict[str, float]:
        """By name; "kernel/name" where several kernels have it."""
        out: dict[str, float] = {}
        for metric in self.raw.get("metrics", []):
            name = metric["name"]
            out[name if name not in out else f"{metric.get('kernel', '')}/{name}"] = metric["value"]
        return out

    @property
    def samples(self) -> dict[str, list[float]]:
        """Latencies in ns, one a round, of the candidate, the parent and the references."""
        return {entry["subject"]: entry["ns"] for entry in self.raw.get("samples", [])}


@dataclass(frozen=True)
class State:
    """K00 … K*."""

    id: str
    title: str
    path: Path
    trial: Trial | None
    raw: dict = field(repr=False)

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Attempt:
    """A candidate that was tried from a state and rejected."""

    id: str
    parent: str
    title: str
    reason: str
    path: Path
    trial: Trial | None
    raw: dict = field(repr=False)


@dataclass(frozen=True)
class Workload:
    name: str
    path: Path
    raw: dict = field(repr=False)  # workload.toml


@dataclass(frozen=True)
class Lineage:
    workload: str
    platform: str
    key: str  # "softmax/pocl", "softmax/pocl-walked"
    title: str
    path: Path
    states: list[State]  # K00 first, K* last
    attempts: list[Attempt]
    transitions: list[dict]  # one fewer than states
    trials: dict[str, Trial]  # all of trials.jsonl, by id
    notices: list[str]
    raw: dict = field(repr=False)

    def state(self, id: str) -> State:
        for state in self.states:
            if state.id == id:
                return state
        raise KeyError(f"{self.key} has no state {id}")

    def table(self) -> list[dict[str, Any]]:
        """A row a state and attempt, with the figures of its trial and their intervals; None where something was not measured.
        `klineage-cli lineage table --csv FILE` writes the same columns."""
        base = _timed(self.states[0].trial) if self.states else None
        rows, before = [], ""
        for entry in [*self.states, *self.attempts]:
            is_state = isinstance(entry, State)
            trial = entry.trial
            timed = _timed(trial)
            parent = timed.comparison("parent") if timed else None
            reference = timed.reference if timed else None
            own, k0 = timed.latency_ns if timed else None, base.latency_ns if base else None
            ratio = Interval(k0.value / own.value, k0.low / own.high, k0.high / own.low) if own and k0 else None
            row = {"lineage": self.key, "kind": "state" if is_state else "attempt", "id": entry.id, "title": entry.title,
                   "parent": before if is_state else entry.parent, "trial": trial.id if trial else None,
                   "status": trial.status if trial else None}
            for name, interval in (("latency_ns", own), ("speedup_to_parent", parent.speedup if parent else None),
                                   ("speedup_to_k0", ratio), ("speedup_to_reference", reference.speedup if reference else None)):
                row |= {name: interval.value if interval else None, name + "_low": interval.low if interval else None,
                        name + "_high": interval.high if interval else None}
            row["reference"] = (reference.raw.get("subject") or reference.against) if reference else None
            row["device"] = trial.device if trial else None
            rows.append(row)
            before = entry.id if is_state else before
        return rows


@dataclass(frozen=True)
class Card:
    name: str
    intent: str
    category: str
    path: Path
    carrier: str
    life: str  # hypothesis, admitted or retired, as of the card's last change
    verifications: list[dict]
    reviews: list[dict]
    notices: list[str]
    raw: dict = field(repr=False)  # card.toml


@dataclass(frozen=True)
class Exchange:
    """A question to an author and its reply, with the whole request written out."""

    number: int
    system: str
    messages: list[dict]  # {"role", "text"}
    reply: str
    dollars: float
    raw: dict = field(repr=False)


@dataclass(frozen=True)
class Run:
    id: str
    path: Path
    settings: dict  # run.toml
    ending: str  # complete step_limit rejection_limit budget stopped error; "" while it has none
    steps: list[dict]
    trials: dict[str, Trial]
    notices: list[str]

    def trajectory(self) -> list[tuple[float, float]]:
        """Dollars and the running best, a step."""
        return [(step["total_dollars"], step["best"]) for step in self.steps if "best" in step]

    def transcript(self) -> list[Exchange]:
        """What was asked and answered; a request that goes on with an earlier chat is put together again."""
        lines, _ = _json_lines(self.path / "transcript.jsonl")
        exchanges: list[Exchange] = []
        for line in lines:
            request = line["request"]
            system, messages = request.get("system", ""), request.get("messages", [])
            if "after" in request:
                before = exchanges[request["after"] - 1]
                chat = before.messages + ([{"role": "assistant", "text": before.reply}] if before.reply else [])
                messages = chat[:request.get("keep", len(chat))] + messages
                system = request.get("system", before.system)
            messages = [{"role": message["role"], "text": message["text"]} for message in messages]
            exchanges.append(Exchange(line["number"], system, messages, line["reply"]["text"], line["micro_dollars"] / 1e6, line))
        return exchanges


class Workspace:
    """The folder that has workloads/, skills/ and runs/."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "workloads").is_dir():
            raise ReadError(f"'{self.path}' is no workspace: it has no folder workloads/")

    def workloads(self) -> list[Workload]:
        return [Workload(file.parent.name, file.parent, _toml(file)) for file in sorted(self.path.glob("workloads/*/workload.toml"))]

    def lineages(self, workload: str | None = None) -> list[Lineage]:
        return [_lineage(file.parent) for file in sorted(self.path.glob(f"workloads/{workload or '*'}/lineages/*/lineage.toml"))]

    def lineage(self, key: str) -> Lineage:
        """By its key, as in "softmax/pocl"."""
        workload, _, platform = key.partition("/")
        folder = self.path / "workloads" / workload / "lineages" / platform
        if ".." in (workload, platform) or "/" in platform or not (folder / "lineage.toml").is_file():
            raise KeyError(f"there is no lineage {key}")
        return _lineage(folder)

    def trials(self) -> Iterator[Trial]:
        """Those of all lineages."""
        for lineage in self.lineages():
            yield from lineage.trials.values()

    def cards(self) -> list[Card]:
        return [_card(file.parent) for file in sorted(self.path.glob("skills/*/card.toml"))]

    def card(self, name: str) -> Card:
        for card in self.cards():
            if card.name == name:
                return card
        raise KeyError(f"there is no card {name}")

    def runs(self) -> list[Run]:
        """Those of runs/ and of the experiments."""
        files = [*self.path.glob("runs/*/run.toml"), *self.path.glob("experiments/*/runs/*/run.toml")]
        kept: dict[str, dict[str, Trial]] = {}
        return [_run(file.parent, self.path, kept) for file in sorted(files)]

    def run(self, id: str) -> Run:
        for run in self.runs():
            if run.id == id:
                return run
        raise KeyError(f"there is no run {id}")


def write_csv(rows: list[dict[str, Any]], file) -> None:
    """Rows with the same keys, as Lineage.table() has them, into an open text file or a path."""
    if isinstance(file, (str, Path)):
        with open(file, "w", encoding="utf-8", newline="") as opened:
            return write_csv(rows, opened)
    if rows:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _timed(trial: Trial | None) -> Trial | None:
    return trial if trial and trial.status == "correct" and trial.latency_ns and trial.latency_ns.value > 0 else None


def _check_format(raw: dict, newest: int = 1) -> None:
    """ValueError where a document says a format that is none, or newer than this reader; newer minor ones only add keys."""
    format = raw.get("format", 1)
    major, _, minor = (format if isinstance(format, str) else repr(format)).partition(".")
    if not major.isdecimal() or isinstance(format, float) or not (minor or "0").isdecimal() or int(major) < 1:
        raise ValueError(f"{format!r} is no number of a format")
    if int(major) > newest:
        raise ValueError(f"the format is {format}; this reader knows those up to {newest}")


def _toml(path: Path, newest: int = 1) -> dict:
    try:
        with open(path, "rb") as file:
            raw = tomllib.load(file)
        _check_format(raw, newest)
        return raw
    except (OSError, ValueError) as problem:  # of TOML and of text too
        raise ReadError(f"{path}: {problem}") from problem


def _json_lines(path: Path) -> tuple[list[dict], list[str]]:
    """The objects of a file that may be missing, and what was left out of it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], []
    except OSError as problem:
        raise ReadError(f"{path}: {problem}") from problem
    lines, notices = [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise ValueError("it is no object")
            _check_format(value)
            lines.append(value)
        except ValueError as problem:
            notices.append(f"{path.name}:{number}: left out: {problem}")
    return lines, notices


def _trials(path: Path, elsewhere=None) -> tuple[dict[str, Trial], list[str]]:
    """elsewhere: looks up a trial that a run names and a lineage keeps."""
    lines, notices = _json_lines(path)
    trials = {}
    for line in lines:
        try:
            if elsewhere and "lineage" in line and "verdict" not in line:
                trials[line["id"]] = elsewhere(line["lineage"], line["id"])
                continue
            trial = Trial.of(line)
            trials[trial.id] = trial
        except (KeyError, TypeError) as problem:
            notices.append(f"{path.name}: a trial was left out: {problem!r}")
    return trials, notices


def _lineage(folder: Path) -> Lineage:
    raw = _toml(folder / "lineage.toml")
    trials, notices = _trials(folder / "trials.jsonl")

    def trial_of(entry: dict, name: str) -> Trial | None:
        id = entry.get("trial", "")
        if id and id not in trials:
            notices.append(f"{name} names the trial {id}, which is not in trials.jsonl")
        return trials.get(id)

    states = [State(s["id"], s.get("title", ""), folder / s["file"], trial_of(s, s["id"]), s) for s in raw.get("state", [])]
    attempts = [Attempt(a["id"], a.get("parent", ""), a.get("title", ""), a.get("reason", ""), folder / a["file"],
                        trial_of(a, a["id"]), a) for a in raw.get("attempt", [])]
    workload = raw.get("workload", folder.parent.parent.name)
    return Lineage(workload, raw.get("platform", ""), f"{workload}/{folder.name}", raw.get("title", ""), folder, states, attempts,
                   raw.get("transition", []), trials, notices, raw)


def _card(folder: Path) -> Card:
    raw = _toml(folder / "card.toml", newest=2)
    verifications, notices = _json_lines(folder / "verification.jsonl")
    reviews, more = _json_lines(folder / "reviews.jsonl")
    carrier = folder / raw["carrier"] if raw.get("carrier") else None
    life = "retired" if raw.get("retired") else "hypothesis"
    markdown = folder / "SKILL.md"
    if markdown.is_file() and life != "retired":
        for line in markdown.read_text(encoding="utf-8").splitlines()[:20]:
            key, _, value = line.strip().partition(": ")
            if key == "life":
                life = value.strip('"')
    return Card(raw["name"], raw["intent"]["text"], raw.get("category", ""), folder,
                carrier.read_text(encoding="utf-8") if carrier and carrier.is_file() else "", life, verifications, reviews,
                notices + more, raw)


def _run(folder: Path, root: Path, kept: dict[str, dict[str, Trial]]) -> Run:
    def kept_trial(key: str, id: str) -> Trial:
        workload, _, platform = key.partition("/")
        if key not in kept:
            file = root / "workloads" / workload / "lineages" / platform / "trials.jsonl"
            kept[key] = _trials(file)[0] if ".." not in (workload, platform) and "/" not in platform else {}
        return kept[key][id]

    settings = _toml(folder / "run.toml")
    steps, notices = _json_lines(folder / "steps.jsonl")
    trials, more = _trials(folder / "trials.jsonl", kept_trial)
    ending = _toml(folder / "ending.toml").get("ending", "") if (folder / "ending.toml").is_file() else ""
    return Run(settings.get("id", folder.name), folder, settings, ending, steps, trials, notices + more)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: klineage.py WORKSPACE    (prints the table of all lineages as CSV)")
    try:
        write_csv([row for lineage in Workspace(sys.argv[1]).lineages() for row in lineage.table()], sys.stdout)
    except ReadError as failure:
        sys.exit(str(failure))
