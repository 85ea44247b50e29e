#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""check.py KLINEAGE-CLI SOURCE: the author that is a program, and the experiments in which it answered."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

cli, source = sys.argv[1], pathlib.Path(sys.argv[2])
data = source / "tests/data/experiments"
sys.path.insert(0, str(data / "peers"))
import author  # noqa: E402

EXPERIMENTS = ["peers-on-cpu", "peers-on-hopper"]
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def filled(name, **values):
    text = (source / f"resources/prompts/{name}.md").read_text()
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values.get(found.group(1), ""), text)


def system(workload, surface, attempt=1):
    return filled("materialize-system", workload_file=f'```toml\nname = "{workload}"\n```\n', platform="here", device="a device",
                  candidate_format=filled("materialize-format", surface=surface), seed=f"This is attempt {attempt}.\n")


def answer(question, workload="softmax", surface="opencl", attempt=1, before=()):
    turns = [*before, question]
    messages = [{"role": "assistant" if i % 2 else "user", "text": text} for i, text in enumerate(turns)]
    request = json.dumps({"system": system(workload, surface, attempt), "messages": messages})
    out = subprocess.run([sys.executable, data / "peers/author.py"], input=request, capture_output=True, text=True, check=True).stdout
    reply = json.loads(out)
    expect(set(reply["usage"]) == {"input", "cache_read", "cache_write", "output"}, "usage")
    return reply["text"]


def block(reply):
    found = re.fullmatch(r"[^`]*```\n(.*?)```\n", reply, re.S)
    expect(found is not None, "one fenced block in " + reply[:200])
    return found.group(1) if found else ""


def step(**values):
    return filled("search-step", **{"base": "the root file\n", "verdict": "Verdict: correct (stage profile, ok).\n", **values})


def answers():
    family = author.Family("softmax", "opencl")
    shown = "this file:\n\n```\n" + family.write({**family.plain, "v": "4"}) + "```\n"
    evolve = step(task="A population of programs evolves.", base=shown, asked="Write one program that is faster.")
    for workload, surface in (("softmax", "opencl"), ("rmsnorm", "opencl"), ("layernorm", "cuda"), ("sgemm", "opencl"), ("softmax", "cuda")):
        for text in (filled("materialize-own", base="the root file\n"), evolve if workload == "softmax" and surface == "opencl" else
                     step(task="This is a large step, 1 of 50 of a tree search.", asked="Write a program anew"),
                     step(task="This is a small step, 2 of 50 of a tree search.", asked="Revise the program in one or two places"),
                     step(task="This is seed 3 of 15.", asked="Write a program that is faster than the root"),
                     filled("materialize-suggest", base=shown if surface == "opencl" and workload == "softmax" else "the root file\n")):
            made = block(answer(text, workload, surface))
            expect(made.startswith("/*klineage\n") and f'surface = "{surface}"' in made and "// genes: " in made, "a candidate: " + made[:200])
    expect(answer(evolve) == answer(evolve), "the same prompt, the same answer")
    expect(len({answer(evolve, attempt=n) for n in range(1, 6)}) > 1, "another attempt, another answer")

    plan = block(answer(step(task="You are the planner of a beam search. This is plan 1 of 4 for this program.")))
    changed = re.search(r"(\w+) (\S+) -> (\w+)", plan)
    expect(changed is not None and not plan.startswith("/*klineage"), "a plan: " + plan)
    execute = step(task="You are the executor of a beam search. This is attempt 1 of 2 at it.", history=f"The plan:\n\n```\n{plan}```\n")
    expect(f"{changed.group(1)}={changed.group(3)}" in block(answer(execute)), "the executor does what the plan says")
    lesson = block(answer(step(task="You are the summarizer of a beam search.", history=f"It was changed by this plan:\n\n```\n{plan}```\n",
                               asked="and why it paid.")))
    expect(changed.group(0) in lesson and "It paid" in lesson, "a lesson names the change: " + lesson)

    cards = "- * vectorize-unit-stride-axis 3.22: Let a work-item handle …\n- tma-slab-copies 1.29 tma: Copy …\n"
    chosen = block(answer(filled("materialize-choose", cards=cards, base="the root file\n")))
    expect(chosen == "vectorize-unit-stride-axis: missing\ntma-slab-copies: skip - no edit of mine\n", "cards by what it can edit: " + chosen)
    taken = block(answer(filled("materialize-bundle", names="`vectorize-unit-stride-axis`", base="the root file\n")))
    expect(not re.search(r"genes: .*\bv=1\b", taken), "a card is applied: " + taken[:300])

    broken = family.write({**family.plain, "v": "4"}, ["syntax"])
    expect(broken != family.write({**family.plain, "v": "4"}), "a mistake shows in the text")
    repaired = [block(answer(filled("materialize-repair", verdict="Verdict: compile_error.\n", left="2", file=f"this file:\n\n```\n{broken}```\n"),
                             attempt=n)) for n in range(8)]
    expect(sum(text == family.write({**family.plain, "v": "4"}) for text in repaired) >= 6, "what it wrote wrongly it writes rightly")

    # A mistake that a rule names is made no more.
    rule = "Rules from failures that happened again and again; keep to them:\n\n- compile_error: error: expected ';' after expression (3 times)\n\n"

    def slips(lessons):
        request = {"system": system("softmax", "opencl"), "messages": [{"role": "user", "text": step(base=shown, lessons=lessons, asked="x")}]}
        one = author.Author(request)
        return [one.slips(one.prompt.base, 1.0) for _ in range(400)]
    expect(any("syntax" in made for made in slips("")) and not any("syntax" in made for made in slips(rule)), "rules are kept to")


def records(folder):
    for name in EXPERIMENTS:
        if not (data / name / "runs.tar.xz").exists():
            print(f"{name}: planned, not recorded yet.")
            continue
        subprocess.run([data / "unpack.sh", name, folder], check=True)
        experiment = pathlib.Path(folder) / name
        runs = sorted((experiment / "runs").iterdir())
        for run in runs:
            again = subprocess.run([cli, "run", "replay", run, "--workspace", source], capture_output=True, text=True)
            expect(again.returncode == 0, f"{run.name}: {again.stdout}{again.stderr}")
        shown = subprocess.run([cli, "experiment", "show", experiment, "--workspace", source], capture_output=True, text=True)
        expect(shown.returncode == 0, f"experiment show {name}: {shown.stderr}")
        table = subprocess.run([sys.executable, data / "peers/mechanisms.py", experiment], capture_output=True, text=True).stdout
        expect(len(table.splitlines()) == 2 + len(runs), f"a row for each run of {name}")
        print(f"{name}: {len(runs)} runs again, {table.count('NOT SEEN')} without what they are named after.")


answers()
with tempfile.TemporaryDirectory() as scratch:
    records(scratch)
sys.exit(1 if failures else 0)
