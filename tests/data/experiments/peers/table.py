#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison in short, as Markdown: table.py [--into README.md] FOLDER… of experiments. With --into it stands between
`<!-- peers: table -->` and `<!-- peers: end -->` there.

The gain of a run is that of its audit, paired with the root; a run whose best is the root, or that has no audit, counts as a failure and with 1.
"""
import math
import pathlib
import sys

from mechanisms import SHOWS, Run

MARK, END = "<!-- peers: table -->", "<!-- peers: end -->"
POLICIES = ["klineage", "generated-only", "greedy", "kernel-smith", "kernelpro", "adaexplore", "accelopt"]


def gain(run):
    audit = next((step for step in run.steps if step["action"] == "audit" and step["outcome"] == "audited"), None)
    if audit is None:
        return None
    found = next((c for c in run.trials[audit["trial"]]["verdict"]["comparisons"] if c["against"] == "parent"), None)
    return found["speedup"]["value"] if found and found["change"] == "gain" else None


def mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def main():
    args = sys.argv[1:]
    into = pathlib.Path(args.pop(args.index("--into") + 1)) if "--into" in args else None
    args = [arg for arg in args if arg != "--into"]
    runs = [run for folder in args for run in (Run(path) for path in sorted(pathlib.Path(folder, "runs").iterdir()))
            if run.ending in ("budget", "complete", "step_limit")]
    roots = sorted({run.subject for run in runs}, key=lambda root: ("sm90" in root, root))
    heads = ["policy", *(f"`{root}`" for root in roots), "all", "failures", "questions", "correct", "mechanism seen"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for policy in POLICIES:
        mine = [run for run in runs if run.policy == policy]
        if not mine:
            continue
        cells = []
        for root in roots:
            gains = [gain(run) or 1.0 for run in mine if run.subject == root]
            cells.append(f"{mean(gains):.2f}× ({min(gains):.2f}–{max(gains):.2f})" if gains else "–")
        gated = sum(len(run.programs) - 1 for run in mine)
        correct = sum(program["ok"] for run in mine for program in run.programs[1:])
        seen = sum(SHOWS[policy](run)[0] for run in mine) if policy in SHOWS and policy != "klineage" else None
        counts = [len(run.questions) for run in mine]
        lines.append("| " + " | ".join([f"`{policy}`", *cells, f"{mean([gain(run) or 1.0 for run in mine]):.2f}×",
                                        str(sum(gain(run) is None for run in mine)), f"{min(counts)}–{max(counts)}",
                                        f"{100 * correct / max(gated, 1):.0f} %", "–" if seen is None else f"{seen} of {len(mine)}"]) + " |")
    text = "\n".join(lines)
    if into:
        before, mark, rest = into.read_text().partition(MARK)
        _, end, after = rest.partition(END)
        if not mark or not end:
            sys.exit(f"{into} has no {MARK} with an {END} behind it.")
        into.write_text(f"{before}{mark}\n\n{text}\n\nAudited gain over the root, paired: geometric mean of {len(runs)} runs' (least and largest of the seeds); *correct* of the "
                        f"candidates that were gated.\n{end}{after}")
    else:
        print(text)


if __name__ == "__main__":
    main()
