# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder that check.py imports: cards, definitions, problems and archives of other systems.

All of it is written here, after the public descriptions of the forms, and measured by nobody; only the two archives are made by their own
packages (openevolve, shinka-evolve) where this Python has them.
"""
import importlib
import json
import sqlite3
import textwrap
from pathlib import Path

# Cards -----------------------------------------------------------------------------------------------------------------------------------

# What a flat SKILL.md says: id, intent, preconditions, cases, what the loop does before and after.
FLAT = [
    ("cp.async.multistage_ring", "Keep three operand tiles in flight with cp.async so that the tensor cores never wait for global memory",
     ["The main loop reads each operand tile once.", "Three tiles fit in shared memory: 3 * tile_bytes <= 227 KiB."], ["gemm"],
     "load_tile(k); __syncthreads(); multiply(tile);", "cp_async(ring[(k + 2) % 3], k + 2); cp_async_wait<1>(); multiply(ring[k % 3]);"),
    ("wgmma.from.descriptors", "Multiply straight from shared memory through matrix descriptors",
     ["The operands lie in shared memory in the 128-byte swizzle.", "The target is sm_90a."], ["gemm", "attention"],
     "ldmatrix(a); ldmatrix(b); mma_sync(c, a, b);", "wgmma_fence(); wgmma(c, descriptor(a), descriptor(b)); wgmma_commit();"),
    ("softmax.online.rescale", "Fuse the maximum and the sum of a row into one walk by rescaling what was summed before",
     ["A row is read more than once."], ["softmax", "attention"],
     "m = row_max(x); s = row_sum(exp(x - m));", "float n = max(m, v); s = s * exp2f(m - n) + exp2f(v - n); m = n;"),
    ("epilogue.tma_store", "Hand the output tile to the copy engine and go on with the next tile",
     ["The output tile fits in shared memory beside the ring.", 'The last store is waited for before the block ends: "cp.async.bulk.wait_group".'],
     ["gemm"], "for (int i = 0; i < 8; ++i) out[i] = acc[i];", "stage(acc); fence_proxy_async(); tma_store(map, tile); tma_commit();"),
    ("warp.specialized.producer", "Let one warpgroup only copy and two only multiply",
     ["The loop is bound by issue slots, not by memory."], ["gemm"],
     "copy(k); __syncthreads(); multiply(k);", "if (group == 0) produce(k); else consume(k);"),
    ("persistent.tile_walk", "Start one block an SM and let it walk over tiles in the order of the cache",
     ["There are more tiles than SMs."], ["gemm", "grouped-gemm"],
     "tile = blockIdx.x;", "for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) { }"),
]

FLAT_SKILL = """---
skill_id: {id}
intent: {intent}
preconditions:
{preconditions}
scope:
  cases: [{cases}]
  languages: [CUDA C++]
  platforms: [nvidia-sm90a-cuda13]
---

# {id}

## Overview

{intent}. Made up for a test of the form.

## Precondition

{preconditions}

## Scope

Hopper, CUDA 13.

## Code Change Snippet

### Before

```cuda
__global__ void kernel(const half *a, const half *b, float *c)
{{
    {before}
}}
```

### After

```cuda
{filling}
__global__ void kernel(const half *a, const half *b, float *c)
{{
    {after}
}}
```

### Host

```cpp
kernel<<<grid, block, shared_bytes>>>(a, b, c);
```
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_cards(folder):
    """The flat ones of this file; the others are those of tests/data/foreigncards."""
    for name, intent, preconditions, cases, before, after in FLAT:
        filling = "\n".join(f"#define STAGE_{i} {i} // bodies of public cards run to 25 KB" for i in range(120))
        write(folder / name / "SKILL.md", FLAT_SKILL.format(
            id=name, intent=intent, preconditions="\n".join(f"  - {json.dumps(text)}" for text in preconditions), cases=", ".join(cases),
            before=before, after=after, filling=filling))
    return [name for name, *_ in FLAT]


# Definitions -----------------------------------------------------------------------------------------------------------------------------

def tensor(dtype, *shape):
    return {"shape": list(shape), "dtype": dtype}


def var():
    return {"type": "var"}


def const(value):
    return {"type": "const", "value": value}


# Name -> definition without its reference, reference over torch, the same over numpy, the sizes of its workloads.
DEFINITIONS = {
    "rmsnorm_h256": (
        {"op_type": "rmsnorm", "axes": {"batch_size": var(), "hidden_size": const(256)},
         "inputs": {"hidden_states": tensor("float32", "batch_size", "hidden_size"), "weight": tensor("float32", "hidden_size")},
         "outputs": {"output": tensor("float32", "batch_size", "hidden_size")}},
        """
        import torch

        @torch.no_grad()
        def run(hidden_states, weight):
            scale = torch.rsqrt(hidden_states.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
            return hidden_states * scale * weight
        """,
        """
        import numpy as np

        def run(hidden_states, weight):
            return hidden_states / np.sqrt((hidden_states ** 2).mean(axis=-1, keepdims=True) + 1e-6) * weight
        """,
        [{"batch_size": 512}, {"batch_size": 7}]),
    "gemm_n96_k64": (
        {"op_type": "gemm", "axes": {"M": var(), "N": const(96), "K": const(64)},
         "inputs": {"A": tensor("float32", "M", "K"), "B": tensor("float32", "N", "K")}, "outputs": {"C": tensor("float32", "M", "N")}},
        """
        import torch

        def run(A, B):
            return torch.matmul(A, B.T)
        """,
        """
        import numpy as np

        def run(A, B):
            return np.matmul(A, B.T)
        """,
        [{"M": 128}, {"M": 33}]),
    "silu_and_mul_h128": (
        {"op_type": "activation", "axes": {"tokens": var(), "hidden": const(128), "both": {"type": "expr", "expression": "2 * hidden"}},
         "inputs": {"x": tensor("float32", "tokens", "both")}, "outputs": {"y": tensor("float32", "tokens", "hidden")}},
        """
        import torch

        def run(x):
            gate, up = x.chunk(2, dim=-1)
            return torch.nn.functional.silu(gate) * up
        """,
        """
        import numpy as np

        def run(x):
            gate, up = x[:, :x.shape[1] // 2], x[:, x.shape[1] // 2:]
            return gate / (1 + np.exp(-gate)) * up
        """,
        [{"tokens": 256}]),
}


def write_definitions(folder, has_torch):
    for name, (parts, over_torch, over_numpy, sizes) in DEFINITIONS.items():
        reference = textwrap.dedent(over_torch if has_torch else over_numpy).lstrip()
        definition = {"name": name, "description": "Made up for a test of the form.", "tags": ["status:draft"], **parts, "reference": reference}
        write(folder / "definitions" / parts["op_type"] / f"{name}.json", json.dumps(definition, indent=2))
        lines = [json.dumps({"uuid": f"{name}-{i}", "axes": axes, "inputs": {key: {"type": "random"} for key in parts["inputs"]}})
                 for i, axes in enumerate(sizes)]
        write(folder / "workloads" / parts["op_type"] / f"{name}.jsonl", "\n".join(lines) + "\n")
    return list(DEFINITIONS)


# Problems --------------------------------------------------------------------------------------------------------------------------------

PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self{parameters}):
        super(Model, self).__init__()
        {init}

    def forward(self, {arguments}):
        return {result}


{sizes}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{init_inputs}]
"""

# File -> the parts. The last one drops other elements each time, and no oracle can be made of it.
PROBLEMS = {
    "level1/1_Square_matrix_multiplication_.py": dict(
        parameters="", init="pass", arguments="A, B", result="torch.matmul(A, B)", sizes="N = 96",
        inputs="torch.rand(N, N), torch.rand(N, N)", init_inputs=""),
    "level1/19_ReLU.py": dict(
        parameters="", init="pass", arguments="x", result="torch.relu(x)", sizes="batch_size = 64\ndim = 512",
        inputs="torch.randn(batch_size, dim)", init_inputs=""),
    "level1/23_Softmax.py": dict(
        parameters="", init="pass", arguments="x", result="torch.softmax(x, dim=1)", sizes="batch_size = 32\ndim = 384",
        inputs="torch.rand(batch_size, dim)", init_inputs=""),
    "level2/9_Matmul_Subtract_Multiply_ReLU.py": dict(
        parameters=", in_features, out_features, subtract_value",
        init="self.linear = nn.Linear(in_features, out_features)\n        self.subtract_value = subtract_value",
        arguments="x", result="torch.relu((self.linear(x) - self.subtract_value) * 1.5)",
        sizes="batch_size = 64\nin_features = 80\nout_features = 48\nsubtract_value = 0.5",
        inputs="torch.randn(batch_size, in_features)", init_inputs="in_features, out_features, subtract_value"),
    "level2/66_Matmul_Dropout_Softmax.py": dict(
        parameters=", in_features, out_features, dropout_p",
        init="self.matmul = nn.Linear(in_features, out_features)\n        self.dropout = nn.Dropout(dropout_p)",
        arguments="x", result="torch.softmax(self.dropout(self.matmul(x)), dim=1)",
        sizes="batch_size = 16\nin_features = 40\nout_features = 24\ndropout_p = 0.2",
        inputs="torch.randn(batch_size, in_features)", init_inputs="in_features, out_features, dropout_p"),
}


def write_problems(folder):
    for name, parts in PROBLEMS.items():
        write(folder / name, PROBLEM.format(**parts))
    return list(PROBLEMS)


# Archives --------------------------------------------------------------------------------------------------------------------------------

ROWS_WORKLOAD = """name = "rows"
axes = ["R", "C"]
flops = "R * C"
bytes = "4 * R * (C + 1)"

[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["R", "C"]

[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = ["R"]

[[case]]
name = "timed"
axes = { R = 256, C = 512 }

[[case]]
name = "odd"
axes = { R = 3, C = 17 }

[oracle]
name = "sum_rows"
args = { in = "x", out = "y" }

[tolerance]
reduction = "C"
"""

KERNEL = """// {name}
__kernel void rows(__global const float *x, __global float *y, int C)
{{
    float sum = 0.0f;
    for (int i = 0; i < C; i += {step})
        sum += {terms};
    y[get_group_id(0)] = sum;
}}
"""

# id -> parent, score, whether it is right; the path to the best one is a, b, d. c leaves out every second element.
PROGRAMS = {"a": (None, 1.0, True), "b": ("a", 1.5, True), "c": ("a", 0.2, False), "d": ("b", 2.25, True)}


def code_of(name):
    step = {"a": 1, "b": 2, "c": 2, "d": 4}[name]
    terms = {"c": "x[get_group_id(0) * C + i]"}.get(
        name, " + ".join(f"(i + {k} < C ? x[get_group_id(0) * C + i + {k}] : 0.0f)" for k in range(step)))
    return KERNEL.format(name=name, step=step, terms=terms)


def importable(name):
    """The module, or None with the reason."""
    try:
        return importlib.import_module(name), ""
    except Exception as problem:  # noqa: BLE001 - a package may fail in any way while it is loaded
        return None, f"{type(problem).__name__}: {problem}"


def write_openevolve(folder):
    """Returns who made it."""
    database, why = importable("openevolve.database")
    checkpoint = folder / "openevolve_output" / "checkpoints" / "checkpoint_4"
    if database:
        config = importlib.import_module("openevolve.config").DatabaseConfig(in_memory=True, num_islands=2)
        made = database.ProgramDatabase(config)
        for i, (name, (parent, score, right)) in enumerate(PROGRAMS.items()):
            made.add(database.Program(id=name, code=code_of(name), language="opencl", parent_id=parent, generation=i, iteration_found=i,
                                      metrics={"combined_score": score, "correctness": float(right)}), iteration=i)
        made.save(str(checkpoint), 4)
        return "the package openevolve"
    for i, (name, (parent, score, right)) in enumerate(PROGRAMS.items()):
        write(checkpoint / "programs" / f"{name}.json", json.dumps({
            "id": name, "code": code_of(name), "language": "opencl", "parent_id": parent, "generation": i, "timestamp": 1.0 + i,
            "iteration_found": i, "metrics": {"combined_score": score, "correctness": float(right)}, "complexity": 1.0, "diversity": 0.5,
            "metadata": {"island": i % 2}}))
    write(checkpoint / "metadata.json", json.dumps({
        "islands": [["a", "c"], ["b", "d"]], "archive": ["a", "b", "d"], "best_program_id": "d", "island_best_programs": ["a", "d"],
        "last_iteration": 4, "current_island": 0}))
    return f"this script, after the public schema ({why})"


SHINKA_TABLE = """CREATE TABLE programs (id TEXT PRIMARY KEY, code TEXT NOT NULL, language TEXT NOT NULL, parent_id TEXT,
    archive_inspiration_ids TEXT, generation INTEGER NOT NULL, timestamp REAL NOT NULL, code_diff TEXT, combined_score REAL,
    public_metrics TEXT, private_metrics TEXT, text_feedback TEXT, complexity REAL, correct BOOLEAN DEFAULT 0, metadata TEXT,
    island_idx INTEGER)"""


def write_shinka(folder):
    """Returns who made it."""
    database, why = importable("shinka.database")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "programs.sqlite"
    if database:
        made = database.ProgramDatabase(database.DatabaseConfig(db_path=str(path), num_islands=1), embedding_model="")
        for i, (name, (parent, score, right)) in enumerate(PROGRAMS.items()):
            made.add(database.Program(id=name, code=code_of(name), language="opencl", parent_id=parent, generation=i, correct=right,
                                      combined_score=score, public_metrics={"ms": 1 / score}, island_idx=0))
        made.close()
        return "the package shinka-evolve"
    with sqlite3.connect(path) as connection:
        connection.execute(SHINKA_TABLE)
        connection.execute("CREATE TABLE metadata_store (key TEXT PRIMARY KEY, value TEXT)")
        connection.execute("INSERT INTO metadata_store VALUES ('best_program_id', 'd')")
        for i, (name, (parent, score, right)) in enumerate(PROGRAMS.items()):
            connection.execute(
                "INSERT INTO programs (id, code, language, parent_id, generation, timestamp, combined_score, public_metrics, correct, "
                "metadata, island_idx) VALUES (?, ?, 'opencl', ?, ?, ?, ?, ?, ?, '{}', 0)",
                (name, code_of(name), parent, i, 1.0 + i, score, json.dumps({"ms": 1 / score}), int(right)))
    connection.close()
    return f"this script, after the public schema ({why})"


def write_noise(folder):
    """What lies about in such folders and is none of these: each has to be named."""
    write(folder / "problems" / "helper.py", "print('no problem')\n")
    write(folder / "set" / "solutions" / "fast.json", json.dumps({"name": "fast", "definition": "gemm_n96_k64", "sources": []}))
    write(folder / "cards" / "empty.folder" / "notes.txt", "No card.\n")


def make(folder, has_torch):
    """Returns what is in it, by kind, and who made the archives."""
    folder = Path(folder)
    made = {"cards": write_cards(folder / "cards"), "definitions": write_definitions(folder / "set", has_torch),
            "problems": write_problems(folder / "problems")}
    makers = {"OpenEvolve": write_openevolve(folder), "ShinkaEvolve": write_shinka(folder / "shinka")}
    write_noise(folder)
    return made, makers
