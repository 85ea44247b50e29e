#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks files against resources/schemas.

Usage: check.py [FILE...]. Without files it checks all shipped ones, the schemas themselves, and that mistakes planted into valid documents
are found. Each finding is a line, FILE:LINE: KEY: what, or FILE: KEY: what. Exits with 0 when there is none, 1 when there are some, 77
(skipped) when Python has no package `jsonschema` (4.10 or newer) or no reader of TOML.
"""
import copy
import functools
import importlib.metadata
import json
import math
import os
import pathlib
import sys
import time
import warnings

try:
    import tomllib
except ImportError:
    try:
        import tomli as tomllib
    except ImportError:
        print(f"Skipped: {sys.executable} reads no TOML. Python 3.11 does, and before it Debian's python3-tomli.")
        sys.exit(77)
try:
    import jsonschema
    from jsonschema import Draft202012Validator
    VERSION = tuple(int(part) for part in importlib.metadata.version("jsonschema").split(".")[:2])
    if VERSION < (4, 10):
        raise ImportError
except ImportError:
    print(f"Skipped: {sys.executable} has no package 'jsonschema' from 4.10 on. Install Debian's python3-jsonschema, or configure with "
          "-DKLINEAGE_SCHEMA_PYTHON=V/bin/python, a virtual environment's that has it.")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDER = ROOT / "resources" / "schemas"
MOST_SHOWN = 20  # findings of one document

# What a file is called -> its schema. "folder/file" comes before the file alone.
SCHEMA_OF = {
    "workload.toml": "workload", "lineage.toml": "lineage", "walk.toml": "walk", "card.toml": "card", "pool.toml": "pool",
    "experiment.toml": "experiment", "preregistered.toml": "preregistered", "run.toml": "run", "ending.toml": "ending",
    "subject.toml": "subject", "admission.toml": "admission", "prices.toml": "prices", "models.toml": "models", "cards.json": "cards",
    "trials.jsonl": "trial", "comments.jsonl": "comment", "reviews.jsonl": "review", "verification.jsonl": "verification",
    "steps.jsonl": "step", "transcript.jsonl": "exchange", "ledger.jsonl": "ledger", "rederived/log.jsonl": "rederived",
    "roundtrip/log.jsonl": "roundtrip", "groups.json": "groups", "in.jsonl": "batch", "jobs.jsonl": "batch", "out.jsonl": "batchresult",
}
OWN_FORMAT = {"card": 2}  # formats other than 1 that are known
NO_FORMAT = {"admission"}  # its key 'format' is the card's
SHIPPED = ["workloads", "skills", "tests/data/experiments", "tests/data/runs"]


def is_integer(_, value):
    """As the program reads them: 1.0 is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(_, value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def items(validator, schema, instance, parent):
    """Long lists of plain numbers at once; all else as the package does it."""
    if schema == {"type": "number"} and isinstance(instance, list) and all(is_number(None, value) for value in instance):
        return ()
    return Draft202012Validator.VALIDATORS["items"](validator, schema, instance, parent)


Validator = jsonschema.validators.extend(
    Draft202012Validator, {"items": items},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": is_integer, "number": is_number}))


def load_schemas():
    return {file.name: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.schema.json"))}


def target_of(schemas, name, reference):
    """(file, the part of a schema that a $ref of the file called name points at); None where there is none."""
    file, _, pointer = reference.partition("#")
    target = schemas.get(file or name)
    for part in pointer.split("/")[1:]:
        target = target.get(part) if isinstance(target, dict) else None
    return file or name, target


def inlined(schemas, name, value):
    """The schema without $ref: none of ours leads back to itself, and to look them up anew for each value takes most of the time."""
    if isinstance(value, list):
        return [inlined(schemas, name, part) for part in value]
    if not isinstance(value, dict):
        return value
    own = {key: inlined(schemas, name, part) for key, part in value.items() if key not in ("$ref", "$defs")}
    if "$ref" not in value:
        return own
    return {**inlined(schemas, *target_of(schemas, name, value["$ref"])), **own}


def make_validators(schemas):
    """By the name without its ending; each is made once."""
    return {name.split(".")[0]: Validator(inlined(schemas, name, schema)) for name, schema in schemas.items()}


def schema_of(path):
    path = pathlib.Path(path).absolute()
    return SCHEMA_OF.get(f"{path.parent.name}/{path.name}") or SCHEMA_OF.get(path.name)


def refuse_constant(word):
    raise ValueError(f"{word} is no number")


def parse_json(text):
    return json.loads(text, parse_constant=refuse_constant)


def documents(path):
    """(place, document or the exception that it could not be read for) of a file; the place of a line is its number."""
    try:
        text = pathlib.Path(path).read_bytes().decode("utf-8")
        if not str(path).endswith(".jsonl"):
            parse = tomllib.loads if str(path).endswith(".toml") else parse_json
            return [("", parse(text))]
    except (OSError, ValueError) as problem:  # of TOML and JSON too
        return [("", problem)]
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip(" \t\r"):
            try:
                found.append((f":{number}", parse_json(line)))
            except ValueError as problem:
                found.append((f":{number}", problem))
    return found


def key_of(path):
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "the document"


def short(text):
    return text if len(text) <= 300 else text[:180] + " … " + text[-110:]


def findings_of(validator, document):
    if isinstance(document, Exception):
        return [f"cannot be read: {short(str(document))}"]
    found = []
    for error in validator.iter_errors(document):
        if len(found) == MOST_SHOWN:
            return found + ["there are more findings"]
        best = jsonschema.exceptions.best_match(iter([error]))
        found.append(f"{key_of(best.absolute_path)}: {short(best.message)}")
    return found


def relative(path):
    try:
        return str(pathlib.Path(path).resolve().relative_to(ROOT))
    except ValueError:
        return str(path)


@functools.lru_cache(maxsize=None)
def trials_of(lineage):
    """The ids in the trials.jsonl of a lineage, "softmax/pocl"."""
    workload, _, folder = lineage.partition("/")
    found = documents(ROOT / "workloads" / workload / "lineages" / folder / "trials.jsonl")
    return {document.get("id") for _, document in found if isinstance(document, dict)}


def is_reference(name, path, document):
    """Whether it is a trial of tests/data whose whole line a lineage has (tests/data/copyruns.sh)."""
    return (name == "trial" and isinstance(document, dict) and set(document) == {"id", "file", "lineage"}
            and all(isinstance(value, str) for value in document.values())
            and pathlib.Path(path).resolve().is_relative_to(ROOT / "tests" / "data"))


def check_file(validators, path, findings, valid=None):
    """How many documents the file has. valid(schema's name, document) gets each one without findings."""
    name = schema_of(path)
    if name is None:
        findings.append(f"{relative(path)}: no schema is known for a file of this name")
        return 0
    found = documents(path)
    for place, document in found:
        if is_reference(name, path, document):
            if document["id"] not in trials_of(document["lineage"]):
                findings.append(f"{relative(path)}{place}: the lineage {document['lineage']} has no trial {document['id']}")
            continue
        new = [f"{relative(path)}{place}: {message}" for message in findings_of(validators[name], document)]
        findings += new
        if not new and valid:
            valid(name, document)
    return len(found)


def shipped_files():
    files = [ROOT / "resources" / "prices.toml", ROOT / "pool.toml"]
    for folder in [*SHIPPED, "tests/app/schemas/samples"]:
        for place, folders, names in os.walk(ROOT / folder):
            folders.sort()
            files += [pathlib.Path(place) / name for name in sorted(names)]
    return [file for file in files if schema_of(file) and file.is_file()]


# --- The schemas themselves


def walk(value):
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(part)


def check_schemas(schemas, findings):
    for name, schema in schemas.items():
        place = f"resources/schemas/{name}"
        try:
            Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as problem:
            findings.append(f"{place}: {key_of(problem.absolute_path)}: {short(problem.message)}")
        for key in ("$schema", "$id", "title", "description"):
            if not schema.get(key):
                findings.append(f"{place}: '{key}' is missing")
        if schema.get("$id") != name:
            findings.append(f"{place}: '$id' is not the file's name")
        for part in walk(schema):
            reference = part.get("$ref") if isinstance(part, dict) else None
            if isinstance(reference, str) and target_of(schemas, name, reference)[1] is None:
                findings.append(f"{place}: there is no {reference}")
            if reference is not None and set(part) - {"$ref", "description"}:
                findings.append(f"{place}: a $ref has more than a description beside it")
    known = {name.split(".")[0] for name in schemas} - {"common"}
    for name in sorted(known ^ set(SCHEMA_OF.values())):
        findings.append(f"resources/schemas/{name}.schema.json: it is there without a file that it is for, or the other way round")


def property_names(schema):
    """All keys that a schema's documents can have, but those of common.schema.json."""
    names = set()
    for part in walk(schema):
        if isinstance(part, dict) and isinstance(part.get("properties"), dict):
            names |= {key for key, value in part["properties"].items() if value is not False}
    return names


# --- Mistakes that have to be found


class Specimens:
    """Of each schema a few valid documents that together show each of its keys."""

    def __init__(self, schemas):
        self.missing = {name.split(".")[0]: property_names(schema) - {"format"} for name, schema in schemas.items() if name != "common.schema.json"}
        self.kept = {name: [] for name in self.missing}

    def add(self, name, document):
        if self.kept[name] and not self.missing[name]:
            return
        keys = {key for part in walk(document) if isinstance(part, dict) for key in part}
        if keys & self.missing[name] or not self.kept[name]:
            self.missing[name] -= keys
            self.kept[name].append(shortened(document))


def shortened(value):
    if isinstance(value, dict):
        return {key: shortened(part) for key, part in value.items()}
    if isinstance(value, list):
        return value[:3] if all(is_number(None, part) for part in value) else [shortened(part) for part in value]
    return value


def wrong_values(value):
    """Values of types that stand nowhere in place of this one."""
    if isinstance(value, bool):
        return ["yes", [[]]]
    if isinstance(value, (int, float)) or value is None:
        return [True, [[]]]  # an expression may be a text or a whole number
    if isinstance(value, str):
        return [3.5, [[]]]
    return ["text", 7]


def changed_copies(document):
    """(what was done, the document with it) for an unknown key in each object, and a wrong type of each value; of lists the first items."""
    def visit(value, path):
        if isinstance(value, dict):
            yield f"unknown key in {key_of(path)}", path + ["no_such_key"], [[]]
        children = value.items() if isinstance(value, dict) else enumerate(value[:12]) if isinstance(value, list) else ()
        for key, part in children:
            for wrong in wrong_values(part):
                yield f"{type(wrong).__name__} as {key_of(path + [key])}", path + [key], wrong
            yield from visit(part, path + [key])

    for what, path, value in visit(document, []):
        copied = copy.deepcopy(document)
        target = copied
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = value
        yield what, copied


def without(document, key):
    return {name: value for name, value in document.items() if name != key}


def check_formats(validators, specimens, findings):
    """Each document may say its format, as a number or a text; how many wrong ones were planted."""
    planted = 0
    for name, documents_of_it in specimens.kept.items():
        if name in NO_FORMAT or not documents_of_it:
            continue
        document = documents_of_it[0]
        major = document.get("format", 1)
        newest = OWN_FORMAT.get(name, 1)
        place = f"resources/schemas/{name}.schema.json: format"
        for good in (major, str(major), f"{major}.0", f"{major}.3"):
            findings += [f"{place} {good!r}: {message}" for message in findings_of(validators[name], {**document, "format": good})]
        for bad in (newest + 1, 0, -1, True, 1.5, None, "", "x", "01", "1.", "1.01", f"{newest + 1}", f"{newest + 1}.0", [1]):
            planted += 1
            if validators[name].is_valid({**document, "format": bad}):
                findings.append(f"{place} {bad!r} is not found")
    return planted


def check_mistakes(schemas, validators, specimens, findings):
    """How many mistakes were planted."""
    planted = check_formats(validators, specimens, findings)
    for name, validator in validators.items():
        if name == "common":
            continue
        place = f"resources/schemas/{name}.schema.json"
        for key in sorted(specimens.missing[name]):
            findings.append(f"{place}: no valid document shows the key '{key}'; add one to tests/app/schemas/samples")
        findings += [f"{place}: a document that was shortened: {message}" for document in specimens.kept[name]
                     for message in findings_of(validator, document)]
        copies = [what for document in specimens.kept[name] for what in changed_copies(document)]
        copies += [(f"{key} is missing", without(document, key)) for document in specimens.kept[name]
                   for key in schemas[f"{name}.schema.json"].get("required", []) if key in document]
        for what, document in copies:
            planted += 1
            if validator.is_valid(document):
                findings.append(f"{place}: a planted mistake is not found: {what}")
        if not copies:
            findings.append(f"{place}: there is no document to plant mistakes into")
    cases = json.loads((HERE / "mistakes.json").read_text(encoding="utf-8"))
    for case in cases:
        planted += 1
        place = f"tests/app/schemas/mistakes.json: {case['schema']}, {case['what']}"
        good = case["valid"]
        bad = {**{key: value for key, value in good.items() if key not in case.get("without", [])}, **case.get("with", {})}
        validator = validators[case["schema"]]
        findings += [f"{place}: before the mistake: {message}" for message in findings_of(validator, good)]
        if validator.is_valid(bad):
            findings.append(f"{place}: the mistake is not found")
    return planted


def main(arguments):
    began = time.monotonic()
    schemas = load_schemas()
    findings = []
    if arguments:
        validators = make_validators(schemas)
        count = sum(check_file(validators, path, findings) for path in arguments)
        print(*findings, sep="\n", end="\n" if findings else "")
        print(f"{len(arguments)} files, {count} documents, {len(findings)} findings.")
        return 1 if findings else 0
    check_schemas(schemas, findings)
    if not findings:  # a schema that is none would only say it again
        validators = make_validators(schemas)
        specimens = Specimens(schemas)
        files = shipped_files()
        counts = {}
        for path in files:
            kind = SCHEMA_OF.get(f"{path.parent.name}/{path.name}") or path.name
            file_count, document_count = counts.get(kind, (0, 0))
            counts[kind] = (file_count + 1, document_count + check_file(validators, path, findings, specimens.add))
        planted = check_mistakes(schemas, validators, specimens, findings)
        for kind, (file_count, document_count) in sorted(counts.items()):
            print(f"{kind}: {file_count} files, {document_count} documents")
        print(f"{planted} planted mistakes.")
    print(*findings, sep="\n", end="\n" if findings else "")
    print(f"{len(schemas)} schemas, {len(findings)} findings, {time.monotonic() - began:.1f} s.")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
