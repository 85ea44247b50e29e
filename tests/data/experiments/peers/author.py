#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""An author that is a program, no language model: it edits kernels of a family and answers what any policy asks.

A request as JSON on stdin, {"text", "usage"} on stdout. It knows nothing but the prompt: the programs in it (each names its genes in a
comment), their verdicts, and what the policy adds (top and diverse programs, lessons, rules, plans, cards). Nothing tells it what is fast.
Edits are drawn; the draw depends on the prompt alone. As models do, it makes mistakes, some of them again and again.
"""
import hashlib
import json
import random
import re
import sys

import products
import rows

SLIP_CHANCE = 0.3        # of a candidate
HABIT = 12               # how much more often a mistake is made that is this attempt's habit
REPAIR_SLIP_CHANCE = 0.05
CROSS_CHANCE = 0.35      # of taking genes from another program in view, where several are
TOKEN_BYTES = 4          # nominal

# What a compiler or the gate says of a mistake: a rule that says so keeps it from being made again.
SIGNS = {
    "syntax": ["expected ';'", 'expected a ";"'],
    "name": ["undeclared identifier", "is undefined"],
    "vector": ["unknown type name", "float6"],
    "plan": ["unknown name", "'ROWS'", "ROWS"],
    "shared": ["shared", "local memory"],
    "bound": ["outside", "out of bounds", "wrote"],
    "align": ["misaligned", "outside", "alignment"],
    "barrier": ["barrier", "race"],
}
# Words of a card's line or name, and the gene that it is about.
CARD_WORDS = [
    ("unit-stride axis as one explicit vector", "v"), ("native-vector", "v"), ("widen-to", "v"), ("float4", "v"), ("vectorize", "v"),
    ("warp-per", "who"), ("row-in-registers", "hold"), ("register-tile", "mr"), ("block-outputs", "mr"), ("outputs-a-thread", "mr"),
    ("prefetch", "ahead"), ("prefetch", "stream"), ("reciprocal", "recip"), ("exp-range", "exp"), ("exp2", "exp"), ("online", "walk"),
    ("fuse-reduction", "walk"), ("stage-recomputed", "walk"), ("stage-operand", "stage"), ("streaming", "stream"), ("rows-per-block", "rows"),
    ("tile-shape", "wgx"), ("split-reduction", "lanes"), ("fewer-threads", "rows"), ("square-work-group", "wgy"), ("work-group", "wgx"),
]


class Family:
    def __init__(self, workload, surface):
        self.op = re.sub(r"^heldout-|-[0-9x]+$", "", workload)
        self.surface = surface
        self.maker = products if self.op in products.KERNELS else rows
        self.genes = self.maker.genes_of(self.op, surface)
        self.plain = {name: values[0] for name, values in self.genes.items()}

    def read(self, text):
        """The genes that a program names; those of the plain kernel where it names none."""
        found = re.search(r"^// genes: (.*)$", text, re.M)
        genes = dict(self.plain)
        for word in found.group(1).split() if found else []:
            name, _, value = word.partition("=")
            if value in self.genes.get(name, []):
                genes[name] = value
        return genes

    def write(self, genes, slips=()):
        head, body = self.maker.write(self.op, self.surface, genes, slips)
        said = "// genes: " + " ".join(f"{name}={value}" for name, value in genes.items())
        if "syntax" in slips:
            at = max(i for i, line in enumerate(body) if line.endswith(";"))
            body[at] = body[at][:-1]
        if "name" in slips:
            at = max(i for i, line in enumerate(body) if "C" in line and line.endswith(";") or "K; ++k" in line)
            body[at] = body[at].replace("C", "columns", 1) if "C" in body[at] else body[at].replace("K;", "depth;")
        return "\n".join(head + [said] + body) + "\n"


class Prompt:
    """What the last question shows."""

    def __init__(self, request):
        self.system = request["system"]
        self.messages = request["messages"]
        self.text = self.messages[-1]["text"]
        if "That reply could not be used" in self.text:  # then it is about the question before
            self.text += "\n" + self.messages[-3]["text"] if len(self.messages) > 2 else ""
        found = re.search(r'^name = "([^"]+)"', self.system, re.M)
        self.workload = found.group(1)
        self.surface = re.search(r"on the surface `(\w+)`", self.system).group(1)
        attempt = re.search(r"This is attempt (\d+)", self.system)
        self.attempt = int(attempt.group(1)) if attempt else 0
        self.family = Family(self.workload, self.surface)
        self.programs = [(float(score), self.family.read(text)) for score, text in
                         re.findall(r"^- Program \d+ .*?([\d.]+)× the root:\n\n`{3,}\n(.*?)^`{3,}$", self.text, re.M | re.S)]
        self.base_text = self.find_base()
        self.base = self.family.read(self.base_text)
        self.seen = self.find_seen()

    def has(self, *words):
        return any(word in self.text for word in words)

    def find_base(self):
        """The file that is to change: in the question itself, the root, or the last candidate of the chat."""
        shown = re.search(r"(?:is|from) this file:\n\n`{3,}\w*\n(.*?)^`{3,}$", self.text, re.M | re.S)
        if shown:
            return shown.group(1)
        if self.has("your last candidate", "the file of your last reply"):
            for message in reversed(self.messages[:-1]):
                block = re.search(r"```\n(/\*klineage.*?)^```$", message["text"], re.M | re.S)
                if message["role"] == "assistant" and block:
                    return block.group(1)
        return ""

    def find_seen(self):
        every = re.findall(r"^// genes: .*$", "\n".join(m["text"] for m in self.messages), re.M)
        return {self.key(self.family.read(line)) for line in every} | {self.key(self.family.plain)}

    @staticmethod
    def key(genes):
        return tuple(sorted(genes.items()))

    def failed(self):
        """The verdict of the program to change, when it is none of a correct one."""
        found = re.search(r"^Verdict: (\w+)[^\n]*\n(.*)", self.text, re.M | re.S)
        return found.group(0)[:3000] if found and found.group(1) != "correct" and not self.has("What was tried:\n") else ""

    def experience(self):
        """Weight of a value of a gene by what lessons, notes and memory say of changes to it."""
        weights = {}
        for line in re.findall(r"^- .*$", self.text, re.M):
            good = "(gain)" in line or line.startswith("- Worked") or "a new best" in line
            bad = "(loss)" in line or line.startswith("- Did harm") or re.search(r"wrong|compile_error|unsafe|crash|no faster", line)
            for gene, value in re.findall(r"(\w+) \S+ -> (\w+)", line):
                if good != bool(bad):
                    weights[gene, value] = weights.get((gene, value), 1.0) * (2.5 if good else 0.3)
        return weights


class Author:
    def __init__(self, request):
        self.prompt = Prompt(request)
        self.family = self.prompt.family
        told = json.dumps([request["system"], [m["text"] for m in request["messages"]]])
        self.draws = random.Random(hashlib.sha256(told.encode()).hexdigest())
        habits = random.Random(f"{self.prompt.workload} {self.prompt.surface} {self.prompt.attempt}")
        self.habits = [habits.choice(["syntax", "name", "plan"]), habits.choice(["bound", "tail", "align", "short"])]
        self.weights = self.prompt.experience()
        self.texts = None  # of the programs in view

    # edits

    def mutate(self, genes, count, near=False):
        """As many other values, those preferred that experience speaks for; `near`: of a scale the neighbour."""
        changed = dict(genes)
        for _ in range(200):
            gene = self.draws.choice(sorted(self.family.genes))
            values = [v for v in self.family.genes[gene] if v != changed[gene]]
            if near and len(values) > 3:
                scale = sorted(self.family.genes[gene], key=lambda v: int(v) if v.isdigit() else 0)
                at = scale.index(changed[gene])
                values = [scale[i] for i in (at - 1, at + 1) if 0 <= i < len(scale)]
            value = self.draws.choices(values, [self.weights.get((gene, v), 1.0) for v in values])[0]
            if self.draws.random() > min(1.0, self.weights.get((gene, value), 1.0) / 2.5 + 0.1):
                continue
            changed[gene] = value
            different = sum(changed[g] != genes[g] for g in changed)
            if different >= count and self.is_new(changed):
                return changed
            if different >= count:
                changed = dict(genes)
        return changed

    def is_new(self, genes):
        """A program that is not in view, and whose text is none of these either: some genes do not matter beside others."""
        if self.texts is None:
            self.texts = {self.code(dict(key)) for key in self.prompt.seen}
        return self.code(genes) not in self.texts

    def code(self, genes):
        head, body = self.family.maker.write(self.family.op, self.family.surface, genes, ())
        return "\n".join(head + body)

    def cross(self, genes, other):
        changed = {name: other[name] if self.draws.random() < 0.5 else genes[name] for name in genes}
        return changed if self.is_new(changed) else self.mutate(changed, 1)

    def redraw(self, genes, share):
        changed = {name: self.draws.choice(values) if self.draws.random() < share else genes[name]
                   for name, values in self.family.genes.items()}
        return changed if self.is_new(changed) else self.mutate(changed, 1)

    def slips(self, genes, chance):
        """Mistakes in the writing; none that a rule in view names."""
        rules = re.search(r"Rules from failures.*?\n\n(.*?)\n\n", self.prompt.text + "\n\n", re.S)
        known = [slip for slip, signs in SIGNS.items() if rules and any(sign in rules.group(1) for sign in signs)]
        if self.draws.random() >= chance:
            return ()
        possible = [s for s in self.family.maker.slips_of(self.family.op, self.family.surface, genes) if s not in known]
        weights = [HABIT if s in self.habits else 1 for s in possible]
        # a habit that a rule has ended is no mistake at all, not another one
        share = sum(weights) / (sum(weights) + sum(HABIT if s in self.habits else 1 for s in known))
        return (self.draws.choices(possible, weights)[0],) if possible and self.draws.random() < share else ()

    # answers

    def said(self, genes):
        base = self.prompt.base
        changes = [f"{g} {base[g]} -> {genes[g]}" for g in genes if genes[g] != base[g]]
        return "; ".join(changes) if changes else "the same, written again without the mistake"

    def candidate(self, genes, chance=SLIP_CHANCE):
        slips = self.slips(genes, chance)
        return f"{self.said(genes)}\n\n```\n{self.family.write(genes, slips)}```\n"

    def repair(self):
        """What differs from what these genes should be written as was a mistake of writing; else one of the genes is at fault."""
        base = self.prompt.base
        clean = self.family.write(base)
        if self.prompt.base_text.strip() != clean.strip():
            return self.candidate(base, REPAIR_SLIP_CHANCE)
        changed = dict(base)
        odd = [g for g in base if base[g] != self.family.plain[g]]
        for gene in self.draws.sample(odd, min(len(odd), 2)) if odd else []:
            changed[gene] = self.family.plain[gene]
        return self.candidate(changed if self.is_new(changed) else self.mutate(changed, 1), REPAIR_SLIP_CHANCE)

    def gene_of_card(self, name, line):
        for word, gene in CARD_WORDS:
            if gene in self.family.genes and (word in name or word in line):
                return gene
        return None

    def choose_cards(self):
        """A card is wanted when its line speaks of a gene of this family that the best still has at its plain value."""
        index = self.prompt.text.split("Here are cards:")[-1].split("Look through them")[0]
        lines, wanted = [], 0
        for name, line in re.findall(r"^- \*?\s*([a-z0-9]+(?:-[a-z0-9]+)*)(.*)$", index, re.M):
            gene = self.gene_of_card(name, line)
            if gene and self.prompt.base[gene] == self.family.plain[gene] and wanted < 4:
                wanted += 1
                lines.append(f"{name}: missing")
            else:
                lines.append(f"{name}: " + ("present" if gene else "skip - no edit of mine"))
        if not lines:
            return "DONE: no card is shown.\n"
        return "The cards whose words name what I can edit.\n\n```\n" + "\n".join(dict.fromkeys(lines)) + "\n```\n"

    def apply_cards(self):
        names = re.findall(r"`([a-z0-9-]+)`", self.prompt.text.split("all of them in one candidate:")[-1].split("\n")[0])
        changed = dict(self.prompt.base)
        for name in names:
            gene = self.gene_of_card(name, "")
            if gene:
                others = [v for v in self.family.genes[gene] if v not in (changed[gene], self.family.plain[gene])]
                changed[gene] = self.draws.choice(others or self.family.genes[gene][1:])
        if changed == self.prompt.base:
            return "DONE: these cards name no edit of mine.\n"
        return self.candidate(changed if self.is_new(changed) else self.mutate(changed, 1))

    def plan(self):
        number = int(re.search(r"This is plan (\d+)", self.prompt.text).group(1))
        genes = self.mutate(self.prompt.base, 1 if number < 3 else 2)
        return f"A plan.\n\n```\nChange {self.said(genes)}. Nothing else.\n```\n"

    def execute(self):
        plan = re.search(r"The plan:\n\n`{3,}\n(.*?)^`{3,}$", self.prompt.text, re.M | re.S).group(1)
        changed = dict(self.prompt.base)
        for gene, value in re.findall(r"(\w+) \S+ -> (\w+)", plan):
            if value in self.family.genes.get(gene, []):
                changed[gene] = value
        if self.prompt.has("This is attempt 2"):  # another way to the same plan: one free choice beside it
            kept = dict(changed)
            changed = self.mutate(changed, 1, near=True)
            changed.update({g: kept[g] for g in kept if kept[g] != self.prompt.base[g]})
        return self.candidate(changed if self.is_new(changed) else self.mutate(changed, 1))

    def summary(self):
        plan = re.search(r"It was changed by this plan:\n\n`{3,}\n(.*?)^`{3,}$", self.prompt.text, re.M | re.S).group(1)
        changes = "; ".join(re.findall(r"\w+ \S+ -> \w+", plan))
        end = "It paid." if self.prompt.has("why it paid") else "It did harm."
        return f"A lesson.\n\n```\nWhat was changed: {changes}. Of a program with {self.short()}. {end}\n```\n"

    def short(self):
        base = self.prompt.base
        return ", ".join(f"{g} {base[g]}" for g in base if base[g] != self.family.plain[g]) or "all plain"

    def answer(self):
        p = self.prompt
        if p.has("has a line for each card"):
            return self.choose_cards()
        if p.has("You are the planner"):
            return self.plan()
        if p.has("You are the executor"):
            return self.execute()
        if p.has("You are the summarizer"):
            return self.summary()
        if p.has("Take these cards into"):
            return self.apply_cards()
        if p.has("You are the fixer", "The candidate did not pass", "The program failed.", "This program failed."):
            return self.repair()
        if p.has("write the strongest candidate"):
            return self.candidate(self.redraw(p.base, 0.7))
        seed = re.search(r"This is seed (\d+) of (\d+)", p.text)
        if seed:
            return self.candidate(self.redraw(p.base, 0.2 + 0.6 * int(seed.group(1)) / int(seed.group(2))))
        if p.has("This is a large step"):
            others = [genes for _, genes in p.programs]
            if others and self.draws.random() < 0.5:
                return self.candidate(self.cross(self.redraw(p.base, 0.2), self.draws.choice(others)))
            return self.candidate(self.redraw(p.base, 0.5))
        if p.has("This is a small step", "Make one change"):
            return self.candidate(self.mutate(p.base, 1, near=self.draws.random() < 0.5))
        if p.programs and self.draws.random() < CROSS_CHANCE:
            scores = [max(score, 0.01) for score, _ in p.programs]
            other = self.draws.choices([genes for _, genes in p.programs], scores)[0]
            return self.candidate(self.cross(p.base, other))
        return self.candidate(self.mutate(p.base, self.draws.choice([1, 1, 2, 3])))


def tokens(text):
    return -(-len(text.encode()) // TOKEN_BYTES)


def main():
    request = json.load(sys.stdin)
    text = Author(request).answer()
    before = request["system"] + "".join(m["text"] for m in request["messages"][:-1])
    usage = {"input": tokens(request["messages"][-1]["text"]), "cache_read": tokens(before), "cache_write": 0, "output": tokens(text)}
    print(json.dumps({"text": text, "model": "kernel-editing-program", "stop": "end", "usage": usage}))


if __name__ == "__main__":
    main()
