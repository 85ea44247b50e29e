#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""check.py KLINEAGE_CLI SOURCE: a folder of other systems' cards, definitions, problems and archives goes in through the command line, our
cards go out and come back through both forms, and a definition and a problem come to a verdict.

The folder is written by bundle.py and has besides the cards of tests/data/foreigncards. What needs torch (KernelBench's problems), a package
of a peer or an OpenCL device is left out where that is missing, and said. References run in this Python, unless KLINEAGE_PYTHON names another.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CLI, SOURCE = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(Path(__file__).resolve().parent))
import bundle  # noqa: E402

PYTHON = os.environ.setdefault("KLINEAGE_PYTHON", sys.executable)


def has_module(name):
    return subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True).returncode == 0


if not has_module("numpy"):
    print(f"Skipped: {PYTHON} has no numpy, which the references are written in. KLINEAGE_PYTHON names another Python.")
    sys.exit(77)
HAS_TORCH = has_module("torch")

RELU = """__kernel void relu(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = fmax(x[i], 0.0f);
}
"""

RMSNORM = """/*klineage
surface = "opencl"

[[launch]]
kernel = "norm"
grid = ["batch_size"]
block = [1]
args = ["hidden_states", "weight", "output", "int hidden_size"]
*/
__kernel void norm(__global const float *x, __global const float *weight, __global float *y, int n)
{
    x += get_global_id(0) * n;
    y += get_global_id(0) * n;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i)
        sum += x[i] * x[i];
    const float scale = 1.0f / sqrt(sum / n + 1e-6f);
    for (int i = 0; i < n; ++i)
        y[i] = x[i] * scale * weight[i];
}
"""


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="klineage-interop-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.foreign = cls.scratch / "foreign"
        cls.made, cls.makers = bundle.make(cls.foreign, HAS_TORCH)
        shutil.copytree(SOURCE / "tests" / "data" / "foreigncards", cls.foreign / "cards" / "others")
        cls.workspace = cls.new_workspace("mine")
        rows = cls.workspace / "workloads" / "rows"
        rows.mkdir()
        (rows / "workload.toml").write_text(bundle.ROWS_WORKLOAD, encoding="utf-8")
        for system, maker in cls.makers.items():
            print(f"The archive of {system} was made by {maker}.")
        if not HAS_TORCH:
            print(f"{PYTHON} has no torch: the references of definitions are in numpy, and problems of KernelBench are refused.")

    @classmethod
    def new_workspace(cls, name):
        for folder in ("workloads", "skills"):
            (cls.scratch / name / folder).mkdir(parents=True)
        return cls.scratch / name

    def run_cli(self, *arguments, workspace=None, status=0):
        done = subprocess.run([CLI, *map(str, arguments), "--workspace", workspace or self.workspace, "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout else {}

    def bring_in(self, *arguments, key, status=0, workspace=None):
        """(names that came in, source -> reason of the rest). Nothing may be silent."""
        out = self.run_cli(*arguments, status=status, workspace=workspace)
        names = [entry[key] for entry in out["entries"] if entry[key]]
        rest = {entry["source"]: entry["reason"] for entry in out["entries"] if not entry[key]}
        self.assertEqual((len(names), len(rest)), (out["imported"], out["skipped"]))
        for source, reason in rest.items():
            self.assertTrue(reason and reason.endswith("."), f"{source}: no reason, or no sentence: {reason}")
        return names, rest

    # Cards

    def test_1_cards(self):
        names, rest = self.bring_in("card", "import", self.foreign / "cards", "--license", "MIT", key="card")
        flat = {re.sub(r"[^a-z0-9]+", "-", name) for name in self.made["cards"]}
        self.assertLessEqual(flat, set(names))
        offered = len(names) + len([reason for reason in rest.values() if not reason.startswith("It has no SKILL.md")])
        self.assertGreaterEqual(offered, 12)
        self.assertGreaterEqual(len(names), 10 * offered / 12)
        for part in ("broken.front", "notes", "memory.json, card 3", "empty.folder"):
            self.assertTrue(any(part in source for source in rest), f"{part} is not named")
        self.assertEqual(len(rest), 4, rest)
        print(f"Cards: {len(names)} of {offered} came in.")
        for card in self.run_cli("card", "lint", *names)["cards"]:
            self.assertNotIn("error", {finding["severity"] for finding in card["findings"]}, card)
        shown = self.run_cli("card", "show", "cp-async-multistage-ring")
        self.assertEqual(shown["life"], "hypothesis")
        self.assertEqual(shown["imported"]["license"], "MIT")
        self.assertEqual(shown["imported"]["name"], "cp.async.multistage_ring")
        carrier = (self.workspace / "skills" / "cp-async-multistage-ring" / "carrier.cu").read_text(encoding="utf-8")
        for part in ("__syncthreads();", "cp_async_wait<1>();", "kernel<<<grid, block, shared_bytes>>>"):
            self.assertIn(part, carrier)
        again, rest = self.bring_in("card", "import", self.foreign / "cards", key="card")
        self.assertEqual(again, [])
        self.assertEqual(sum("already" in reason for reason in rest.values()), len(names))

    def exported(self, form, workspace, place):
        self.run_cli("card", "export", "--form", form, "--to", place, workspace=workspace)
        return place

    def test_2_our_cards_as_rich_json(self):
        """Each field that the form has comes back; verifications made elsewhere are kept with what was read, and admit nothing. Evidence
        cites lineages, so these are there too."""
        first = self.exported("json", SOURCE, self.scratch / "ours.json")
        theirs = self.new_workspace("theirs")
        (theirs / "workloads").rmdir()
        (theirs / "workloads").symlink_to(SOURCE / "workloads")
        names, rest = self.bring_in("card", "import", first, key="card", workspace=theirs)
        self.assertEqual(rest, {})
        before = {card["skill_id"]: card for card in json.loads(first.read_text(encoding="utf-8"))}
        second = self.exported("json", theirs, self.scratch / "again.json")
        after = {card["skill_id"]: card for card in json.loads(second.read_text(encoding="utf-8"))}
        self.assertEqual(set(before), set(after))
        self.assertEqual(set(names), set(before))
        for name, card in before.items():
            for key, value in card.items():
                if key != "verification_log":
                    self.assertEqual(value, after[name][key], f"{name}: {key}")
            original = json.loads((theirs / "skills" / name / "original.json").read_text(encoding="utf-8"))
            self.assertEqual(original["verification_log"], card["verification_log"], name)
        print(f"Rich JSON: {len(before)} cards out and back.")

    def test_3_our_cards_as_skills(self):
        """The form has a name, a description, a licence and words; the rest of the text is kept with what was read."""
        first = self.exported("skill", SOURCE, self.scratch / "skills-ours")
        theirs = self.new_workspace("skills-theirs")
        names, rest = self.bring_in("card", "import", first, key="card", workspace=theirs)
        self.assertEqual(rest, {})
        second = self.exported("skill", theirs, self.scratch / "skills-again")
        self.assertEqual(set(names), {folder.name for folder in first.iterdir()})
        for folder in first.iterdir():
            before, after = ((place / folder.name / "SKILL.md").read_text(encoding="utf-8") for place in (first, second))
            self.assertEqual((theirs / "skills" / folder.name / "original.md").read_text(encoding="utf-8"), before)
            for key in ("name", "license", "skill_id", "category", "locus"):
                self.assertEqual(front_value(before, key), front_value(after, key), f"{folder.name}: {key}")
            ours, other = (sentence_of(front_value(text, "description")) for text in (before, after))
            self.assertTrue(ours.startswith(other) or other.startswith(ours), f"{folder.name}:\n{ours}\n{other}")
            self.assertEqual(other.count("Use when:"), ours.count("Use when:"), folder.name)
        print(f"SKILL.md: {len(names)} cards out and back.")

    # Operators

    def test_4_definitions(self):
        names, rest = self.bring_in("workload", "import", self.foreign / "set", key="workload")
        self.assertEqual(set(names), set(self.made["definitions"]))
        self.assertEqual(list(rest), ["solutions/fast.json"])
        print(f"Definitions: {len(names)} of {len(self.made['definitions'])} came in.")
        for name in names:
            self.assertEqual(self.run_cli("workload", "show", name)["oracle"], "python")

    def test_5_problems(self):
        names, rest = self.bring_in("workload", "import", self.foreign / "problems", key="workload", status=0 if HAS_TORCH else 1)
        self.assertIn("helper.py", rest)
        if not HAS_TORCH:
            for source in self.made["problems"]:
                self.assertIn("torch", rest[source])
            self.skipTest("no torch")
        self.assertGreaterEqual(len(names), 4, rest)
        self.assertEqual(len(names) + len(rest), len(self.made["problems"]) + 1)
        self.assertIn("not deterministic", rest["level2/66_Matmul_Dropout_Softmax.py"])
        print(f"Problems: {len(names)} of {len(self.made['problems'])} came in.")

    def test_6_archives(self):
        for system, where in (("openevolve", "openevolve_output"), ("shinka", "shinka")):
            with self.subTest(system=system):
                if system == "shinka" and self.has_no_sqlite():
                    self.skipTest("this build has no SQLite")
                names, _ = self.bring_in("lineage", "import", self.foreign / where, "--workload", "rows", "--platform", "pocl", key="lineage")
                self.assertEqual(names, [f"rows/pocl-{system}"])
                shown = self.run_cli("lineage", "show", names[0])
                self.assertEqual((len(shown["states"]), len(shown["attempts"]), shown["notices"]), (3, 1, []))
                self.assertEqual(len(self.run_cli("lineage", "jobs", names[0])["jobs"]), 4)
        print("Archives: OpenEvolve's and ShinkaEvolve's came in, three states and one attempt each.")

    def has_no_sqlite(self):
        done = subprocess.run([CLI, "lineage", "import", self.foreign / "shinka", "--workload", "rows", "--platform", "pocl", "--dry-run",
                               "--workspace", self.workspace], capture_output=True, text=True)
        return "built without SQLite" in done.stdout + done.stderr

    # Verdicts

    def gate(self, workload, kernel, *arguments):
        if not any(device["backend"] == "opencl" and device["available"] for device in self.run_cli("gate", "devices")["devices"]):
            self.skipTest("no OpenCL device")
        file = self.scratch / f"{workload}.cl"
        file.write_text(kernel, encoding="utf-8")
        out = self.run_cli(*arguments, file, "--workload", workload)
        return out

    def test_7_a_definition_to_a_verdict(self):
        out = self.gate("rmsnorm_h256", RMSNORM, "gate", "run", "--profile-seconds", "0.3", "--no-reference")
        self.assertEqual(out["status"], "correct", out)
        print("rmsnorm_h256: correct on OpenCL.")

    def test_8_a_problem_to_a_verdict(self):
        if not HAS_TORCH:
            self.skipTest("no torch")
        self.gate("19_relu", RELU, "lineage", "new", "--name", "first")
        shown = self.run_cli("lineage", "show", "19_relu/pocl-first")
        self.assertEqual([state["id"] for state in shown["states"]], ["K00"])
        print("19_relu: correct on OpenCL, with the plan that was proposed.")


def front_value(text, key):
    found = re.search(rf"^ *{key}: (.*)$", text.split("\n---\n")[0], re.MULTILINE)
    value = found.group(1) if found else None
    return json.loads(value) if value and value.startswith('"') else value


def sentence_of(description):
    """Without what is said of its standing here, and where it was cut."""
    return description.removesuffix(" A hypothesis: no roundtrip has admitted it yet.").removesuffix("…").rstrip(". ")


if __name__ == "__main__":
    unittest.main()
