#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the mechanism after which a search is named did in each recorded run: mechanisms.py FOLDER… of experiments, one Markdown table.

Read from the record alone (steps, trials, candidates, prompts): niches that are filled and programs that were changed on another island than the
one they came from; nodes by how often they were widened, and nodes that were left after three children without a gain; rules in
prompts; beams with the programs that they were cut from. Exit status 1 when a search that is over does not show its own.
"""
import json
import math
import pathlib
import re
import sys

QUESTIONS = 40


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Run:
    def __init__(self, folder):
        self.folder = folder
        text = (folder / "run.toml").read_text()
        self.policy = re.search(r'^policy = "(.*)"', text, re.M).group(1)
        self.subject = re.search(r'^subject = "(.*)"', text, re.M).group(1)
        self.seed = int(re.search(r"^seed = (\d+)", text, re.M).group(1))
        self.steps = lines(folder / "steps.jsonl")
        self.trials = {trial["id"]: trial for trial in lines(folder / "trials.jsonl")}
        self.questions = [step for step in self.steps if step.get("exchanges")]
        ending = folder / "ending.toml"
        self.ending = re.search(r'^ending = "(.*)"', ending.read_text(), re.M).group(1) if ending.exists() else "killed"
        self.prompts = self.read_prompts()
        self.populate()

    def read_prompts(self):
        """The last message of each question. One that repeats an earlier request adds no message of its own."""
        said = {}
        for exchange in lines(self.folder / "transcript.jsonl"):
            request = exchange["request"]
            said[exchange["number"]] = request["messages"][-1]["text"] if request.get("messages") else said.get(request.get("after"), "")
        return list(said.values())

    def populate(self):
        """Programs as the searches number them: the root, then each candidate that was gated and is not suspect, with its score."""
        self.programs = [{"sha": self.steps[0]["candidate"], "score": 1.0, "ok": True, "step": self.steps[0], "base": 0}] if self.steps else []
        by_sha = {self.steps[0]["candidate"]: 0} if self.steps else {}
        for step in self.questions:
            step["program"] = None
            if not step.get("trial") or step["outcome"] == "wrapper":
                continue
            trial = self.trials[step["trial"]]
            base = by_sha.get(trial.get("parent"), 0)
            gain = next((c for c in trial["verdict"].get("comparisons", []) if c["against"] == "parent"), None)
            ok = step["outcome"] == "valid" and gain is not None
            step["program"] = len(self.programs)
            step["gains"] = ok and gain["change"] == "gain"
            self.programs.append({"sha": trial["candidate"], "score": self.programs[base]["score"] * gain["speedup"]["value"] if ok else 0.0,
                                  "ok": ok, "step": step, "base": base})
            by_sha[trial["candidate"]] = step["program"]

    def complexity(self, program):
        """Bytes of code, without comments and blanks."""
        path = next((self.folder / "candidates").glob(self.programs[program]["sha"][:12] + ".*"))
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
        return len(re.sub(r"\s", "", text))


def target(step):
    """The program that a question's title names."""
    found = re.search(r"program (\d+)", step["title"])
    return int(found.group(1)) if found else 0


def kernel_smith(run):
    home, moved, migrants = {0: None}, 0, set()
    for step in run.questions:
        island = int(re.search(r"island (\d+)", step["title"]).group(1))
        parent = target(step)
        if home.get(parent) not in (None, island):
            moved += 1
            migrants.add(parent)
        if step["program"] is not None:
            home[step["program"]] = island
    good = [i for i, program in enumerate(run.programs) if program["ok"]]
    sizes, scores = {i: run.complexity(i) for i in good}, {i: math.log(run.programs[i]["score"]) for i in good}

    def cell(values, i, bins=10):
        low, high = min(values.values()), max(values.values())
        return min(bins - 1, int((values[i] - low) / (high - low) * bins)) if high > low else 0
    niches = len({(cell(sizes, i), cell(scores, i)) for i in good})
    return niches > 1 and moved > 0, f"{niches} niches of 100 filled; {moved} questions about {len(migrants)} programs that had migrated"


def kernelpro(run):
    visits, misses, improved = {}, {}, {}
    widened, asked = 0, {}
    for number, step in enumerate(run.questions):
        found = re.search(r"\((\d+) of (\d+) children after (\d+) visits\)", step["title"])
        if not found:
            continue
        node = target(step)
        asked.setdefault(node, []).append(number)
        widened = max(widened, int(found.group(2)))
        repair = not run.programs[node]["ok"]
        made = step["program"]
        if not (made is not None and run.programs[made]["ok"] and (repair or step["gains"])):
            misses.setdefault(node, []).append(number)
    dead = [node for node, at in misses.items() if len(at) >= 3]
    quiet = [node for node in dead if not [n for n in asked[node] if n > misses[node][2] + 1]]
    return widened > 2 and bool(dead), (f"{len(asked)} nodes expanded, the widest allowed {widened} children; {len(dead)} dead ends, "
                                        f"{len(quiet)} of them never asked about again")


def adaexplore(run):
    shown = [re.search(r"Rules from failures.*?\n\n(.*?)\n\n", prompt, re.S) for prompt in run.prompts]
    rules = {re.sub(r" \(\d+ times\)$", "", line) for found in shown if found for line in found.group(1).splitlines()}
    kinds = [step["action"] for step in run.questions]
    return bool(rules), (f"{len(rules)} rules, in {sum(1 for found in shown if found)} questions; {kinds.count('small-step')} small and "
                         f"{kinds.count('large-step')} large steps")


def accelopt(run):
    beams, made, cuts = [], 0, []
    last = None
    for step in run.questions:
        if step["action"] == "plan" and last != "plan":
            beams.append(set())
            cuts.append(made)
            made = 0
        if step["action"] == "plan":
            beams[-1].add(target(step))
        if step["action"] in ("execute", "fix") and step["outcome"] == "valid":
            made += 1
        last = step["action"]
    cut = [f"{count} to {len(beam)}" for count, beam in zip(cuts[1:], beams[1:])]
    memory = sum(1 for prompt, step in zip(run.prompts, run.questions) if step["action"] == "plan" and "What was learnt so far" in prompt)
    return any(count > len(beam) for count, beam in zip(cuts[1:], beams[1:])) and memory > 0, (
        f"{len(beams)} iterations begun; correct attempts cut to beams: {', '.join(cut) or 'none'}; {memory} plans made with a memory")


def klineage(run):
    actions = [step["action"] for step in run.questions]
    cards = set()
    for step in run.questions:
        cards.update(step.get("cards", []) if step["action"] == "complete" else [])
    return True, f"{actions.count('complete')} questions that applied {len(cards)} cards, {actions.count('repair')} repairs"


SHOWS = {"kernel-smith": kernel_smith, "kernelpro": kernelpro, "adaexplore": adaexplore, "accelopt": accelopt, "klineage": klineage}


def main():
    missing = 0
    print("| root | policy | seed | questions | dollars | gated, correct | what its mechanism did |\n|---|---|---|---|---|---|---|")
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder, "runs").iterdir()):
            if not (path / "steps.jsonl").exists():
                continue
            run = Run(path)
            gated = [program for program in run.programs[1:]]
            seen, text = SHOWS.get(run.policy, lambda _: (True, "–"))(run)
            over = run.ending in ("budget", "complete", "step_limit")
            few = len(run.questions) < QUESTIONS
            missing += over and (not seen or few)
            print(f"| {run.subject} | {run.policy} | {run.seed} | {len(run.questions)}{' (too few)' if few else ''} | "
                  f"${run.steps[-1]['total_dollars']:.3f} | {len(gated)}, {sum(program['ok'] for program in gated)} | "
                  f"{'' if seen else 'NOT SEEN: '}{text}{'' if over else ' (not over)'} |")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
