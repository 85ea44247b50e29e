# SPDX-License-Identifier: GPL-3.0-or-later
"""check.py KLINEAGE_CLI SOURCE: the reader for notebooks on the shipped workspace, the recorded runs and broken files."""
import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

if sys.version_info < (3, 11):
    print("skipped: the reader needs Python 3.11")
    sys.exit(77)

CLI, SOURCE = sys.argv.pop(1), Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "resources" / "python"))
import klineage  # noqa: E402


class Reader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.workspace = klineage.Workspace(SOURCE)
        cls.lineages = cls.workspace.lineages()

    def test_lineages(self):
        files = list(SOURCE.glob("workloads/*/lineages/*/lineage.toml"))
        self.assertEqual(len(self.lineages), len(files))
        for lineage in self.lineages:
            self.assertEqual(lineage.notices, [], lineage.key)
            self.assertEqual(len(lineage.transitions), len(lineage.states) - 1)
            for state in lineage.states:
                self.assertTrue(state.path.is_file(), state.path)
                self.assertIs(state.trial, lineage.trials[state.raw["trial"]])
                self.assertEqual(state.trial.status, "correct")
        softmax = self.workspace.lineage("softmax/pocl")
        self.assertIn("klineage", softmax.state("K00").text)
        with self.assertRaises(KeyError):
            self.workspace.lineage("softmax/../softmax")

    def test_trials(self):
        trial = self.workspace.lineage("softmax/pocl").states[-1].trial
        self.assertLessEqual(trial.latency_ns.low, trial.latency_ns.value)
        self.assertEqual(trial.device, trial.raw["environment"]["device"])
        self.assertIn("candidate", trial.samples)
        self.assertIn("work_groups", trial.metrics)
        self.assertEqual(trial.reference.change, trial.comparison(trial.reference.against).change)
        self.assertIsNone(trial.comparison("nothing"))

    def test_table_is_the_programs(self):
        """Every figure of every state and attempt, as `lineage table --csv` writes it."""
        out = subprocess.run([CLI, "lineage", "table", "--csv", "-", "--workspace", str(SOURCE)], check=True,
                             capture_output=True, text=True).stdout
        theirs = list(csv.DictReader(io.StringIO(out)))
        ours = [row for lineage in self.lineages for row in lineage.table()]
        self.assertEqual(list(theirs[0]), list(ours[0]))
        by_id = {(row["lineage"], row["id"]): row for row in theirs}
        self.assertEqual(len(by_id), len(ours))
        for row in ours:
            other = by_id[(row["lineage"], row["id"])]
            for key, value in row.items():
                if isinstance(value, float):
                    self.assertAlmostEqual(float(other[key]) / value, 1, places=12, msg=f"{row['lineage']} {row['id']} {key}")
                else:
                    self.assertEqual(other[key], "" if value is None else value, f"{row['lineage']} {row['id']} {key}")

    def test_csv(self):
        rows = self.workspace.lineage("softmax/pocl").table()
        text = io.StringIO()
        klineage.write_csv(rows, text)
        again = list(csv.DictReader(io.StringIO(text.getvalue())))
        self.assertEqual([row["title"] for row in again], [row["title"] for row in rows])

    def test_cards(self):
        cards = self.workspace.cards()
        self.assertEqual(len(cards), len(list(SOURCE.glob("skills/*/card.toml"))))
        for card in cards:
            self.assertIn(card.life, ("hypothesis", "admitted", "retired"))
            self.assertTrue(card.intent and card.carrier, card.name)
            self.assertEqual(card.notices, [])
        shown = json.loads(subprocess.run([CLI, "card", "list", "--json", "--workspace", str(SOURCE)], check=True,
                                          capture_output=True, text=True).stdout)
        self.assertEqual({c["name"]: c["life"] for c in shown["cards"]}, {c.name: c.life for c in cards})

    def test_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "workloads").symlink_to(SOURCE / "workloads")
            (root / "runs").symlink_to(SOURCE / "tests" / "data" / "runs")
            workspace = klineage.Workspace(root)
            runs = workspace.runs()
            self.assertEqual(len(runs), len(list((SOURCE / "tests" / "data" / "runs").glob("*/run.toml"))))
            for run in runs:
                self.assertEqual(run.notices, [], run.id)
                self.assertTrue(run.steps and run.ending, run.id)
                exchanges = run.transcript()
                for exchange in exchanges:
                    self.assertEqual([m["role"] for m in exchange.messages],
                                     ["user" if i % 2 == 0 else "assistant" for i in range(len(exchange.messages))])
                asked = {number for step in run.steps for number in step.get("exchanges", [])}
                for step in run.steps:
                    self.assertTrue(not step.get("trial") or step["trial"] in run.trials, f"{run.id} {step['step']}")
                self.assertLessEqual(asked, {exchange.number for exchange in exchanges})
                self.assertEqual(len(run.trajectory()), sum("best" in step for step in run.steps))

    def test_broken_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            with self.assertRaises(klineage.ReadError):
                klineage.Workspace(root)
            copied = root / "workloads" / "softmax" / "lineages" / "pocl"
            shutil.copytree(SOURCE / "workloads" / "softmax" / "lineages" / "pocl", copied)
            whole = (copied / "trials.jsonl").read_bytes()
            (copied / "trials.jsonl").write_bytes(whole[:-100] + b"\n[]\n{\"id\":\"x\"}\n\xff\n")
            lineage = klineage.Workspace(root).lineage("softmax/pocl")
            self.assertGreaterEqual(len(lineage.notices), 4)
            self.assertTrue(lineage.states)
            text = (copied / "lineage.toml").read_text(encoding="utf-8")
            (copied / "lineage.toml").write_text('format = "1.7"\nseason = "autumn"\n' + text, encoding="utf-8")
            (copied / "trials.jsonl").write_bytes(whole + b'{"format": 2}\n{"format": "1.x"}\n')
            lineage = klineage.Workspace(root).lineage("softmax/pocl")
            self.assertEqual(lineage.raw["season"], "autumn")
            self.assertEqual(len(lineage.notices), 2)
            for format in ("2", '"2.1"', "0", "1.1", '"new"', "true"):
                (copied / "lineage.toml").write_text(f"format = {format}\n" + text, encoding="utf-8")
                with self.assertRaises(klineage.ReadError):
                    klineage.Workspace(root).lineage("softmax/pocl")
            (copied / "lineage.toml").write_text("workload = ")
            with self.assertRaises(klineage.ReadError):
                klineage.Workspace(root).lineage("softmax/pocl")


if __name__ == "__main__":
    unittest.main()
