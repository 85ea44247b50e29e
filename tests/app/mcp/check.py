#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives `klineage-cli mcp` with the official Python client: initialize, list, every tool, bad arguments, progress, cancel, a run.

Usage: check.py KLINEAGE_CLI REPOSITORY. Exits with 77 (skipped) when the package `mcp` is not installed, with 1 on a failure.
"""
import asyncio
import importlib.util
import pathlib
import shutil
import sys
import tempfile
import time

if len(sys.argv) != 3:
    sys.exit(__doc__)
if importlib.util.find_spec("mcp") is None:
    print(f"Skipped: {sys.executable} has no package 'mcp' (the official client). Install it into a virtual environment, "
          "python3 -m venv V && V/bin/pip install mcp, and configure with -DKLINEAGE_MCP_PYTHON=V/bin/python.")
    sys.exit(77)

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

try:
    from mcp_types.version import LATEST_PROTOCOL_VERSION as LATEST
except ImportError:
    from mcp.types import LATEST_PROTOCOL_VERSION as LATEST

TOOLS = {"list_workloads", "get_workload", "get_lineage", "list_cards", "get_card", "retrieve_cards", "gate"}
QUICK = {"seeds": 1, "rounds": 3, "profile_seconds": 0.3, "reference": False}


def require(holds, what):
    if not holds:
        raise AssertionError(what)
    print("ok:", what)


async def call(session, tool, arguments=None, **options):
    """(whether it is an error, the first text, structured content), in any version of the client."""
    result = (await session.call_tool(tool, arguments or {}, **options)).model_dump(by_alias=True, mode="json")
    return result["isError"], result["content"][0]["text"], result.get("structuredContent")


def dumped(result):
    return result.model_dump(by_alias=True, mode="json")


async def check_offers(session):
    """Resources, prompts and schemas of outputs; the client checks structured content against the latter itself."""
    listed = dumped(await session.list_resources())["resources"]
    uris = {one["uri"] for one in listed}
    require({"klineage://format/candidate", "klineage://format/workload", "klineage://loop", "klineage://workload/softmax",
             "klineage://card/multiply-by-reciprocal"} <= uris, "resources/list has formats, workloads and cards")
    for uri, part in (("klineage://format/candidate", "[[launch]]"), ("klineage://workload/softmax", "softmax_rows"),
                      ("klineage://card/multiply-by-reciprocal", "multiply-by-reciprocal")):
        text = dumped(await session.read_resource(uri))["contents"][0]["text"]
        require(part in text, f"{uri} can be read")
    templates = dumped(await session.list_resource_templates())["resourceTemplates"]
    require({one["uriTemplate"] for one in templates} == {"klineage://workload/{name}", "klineage://card/{name}"},
            "resources/templates/list")
    try:
        await session.read_resource("klineage://workload/nothing")
        require(False, "an unknown resource is an error")
    except Exception as problem:
        require("no resource" in str(problem), "an unknown resource is an error")
    prompts = {one["name"] for one in dumped(await session.list_prompts())["prompts"]}
    require(prompts == {"optimize", "write_candidate"}, "prompts/list")
    prompt = dumped(await session.get_prompt("optimize", {"workload": "softmax", "platform": "pocl"}))
    require("softmax_rows" in prompt["messages"][0]["content"]["text"], "prompts/get fills the workload in")
    tools = dumped(await session.list_tools())["tools"]
    require(all(tool["outputSchema"]["type"] == "object" for tool in tools), "every tool has an output schema")


async def check_lookups(session):
    error, _, data = await call(session, "list_workloads")
    require(not error and "softmax" in [w["name"] for w in data["workloads"]], "list_workloads lists softmax")
    error, _, data = await call(session, "get_workload", {"workload": "softmax"})
    require(not error and "softmax_rows" in data["workload_toml"], "get_workload gives workload.toml")
    error, text, _ = await call(session, "get_workload", {"workload": "softmacs"})
    require(error and "did you mean 'softmax'" in text, "an unknown workload is an error with a suggestion")
    error, _, data = await call(session, "get_lineage", {"lineage": "softmax/pocl"})
    require(not error and len(data["transitions"]) == len(data["states"]) - 1, "get_lineage chains its states")
    require(all("reason" in attempt for attempt in data["attempts"]), "get_lineage says why attempts were rejected")
    error, _, data = await call(session, "get_lineage", {"lineage": "softmax/pocl", "state": "K00"})
    require(not error and data["source"].startswith("/*klineage"), "get_lineage gives the source of a state")
    source = data["source"]
    error, _, card = await call(session, "get_card", {"card": "multiply-by-reciprocal"})
    require(not error and card["carrier"] and card["preconditions"], "get_card gives carrier and preconditions")
    error, text, found = await call(session, "retrieve_cards", {"state": "softmax/pocl/K01", "hypotheses": True})
    require(not error and found["taken"] and found["taken"][0]["reasons"][0]["text"] in text,
            "retrieve_cards takes cards and says why")
    error, _, found = await call(session, "retrieve_cards", {
        "workload": "softmax", "platform": "pocl",
        "features": [{"locus": "scaling pass", "name": "reciprocal_scale"}], "hypotheses": True})
    rules = {one["card"]: one["rules"] for one in found["blocked"]}
    require(any("already provided" in rule for rule in rules.get("multiply-by-reciprocal", [])),
            "retrieve_cards says what blocked a card")
    error, text, _ = await call(session, "retrieve_cards", {"state": "softmax/pocl/K00", "prior": ["x"]})
    require(error and "'prior' is no argument" in text, "an unknown argument is an error that names it")
    return source


async def check_gate(session, source):
    seen = []

    async def progress(done, total, message):
        seen.append((done, message))

    error, text, trial = await call(session, "gate", {"workload": "softmax", "candidate": source, **QUICK},
                                    progress_callback=progress)
    status = trial["verdict"]["status"]
    require(not error and status in ("correct", "unavailable"), f"gate: {status}")
    require(text.startswith("Verdict: " + status) and "samples" not in trial and "seeds" not in trial,
            "gate says its verdict as text and as an object, without seeds and samples")
    if status == "unavailable":
        print("There is no OpenCL device: wrong candidates, progress and cancellation were not checked.")
        return False
    require(trial["latency_ns"]["value"] > 0, "gate times the candidate")
    require(len(seen) >= 2 and all(a[0] < b[0] for a, b in zip(seen, seen[1:])), f"gate reports progress, {len(seen)} times")
    wrong = source.replace("y[c] /= total", "y[c] /= 2 * total")
    require(wrong != source, "the candidate can be broken")
    error, _, trial = await call(session, "gate", {"workload": "softmax", "candidate": wrong, "parent_state": "softmax/pocl/K00", **QUICK})
    require(not error and trial["verdict"]["status"] == "wrong", "gate refuses a wrong candidate")
    error, _, trial = await call(session, "gate", {"workload": "softmax", "candidate": "not a candidate", **QUICK})
    require(not error and trial["verdict"]["status"] == "compile_error", "gate judges what is no candidate")
    return True


async def check_cancel(session, source):
    long = {"workload": "softmax", "candidate": source, "seeds": 20, "rounds": 1000, "profile_seconds": 120,
            "timeout_seconds": 600}
    began = time.monotonic()
    with anyio.move_on_after(3) as scope:
        await call(session, "gate", long)
    require(getattr(scope, "cancelled_caught", False), "a long gate call can be given up")
    if hasattr(session, "_request_id"):  # clients before 2.0 do not tell the server
        from mcp import types
        await session.send_notification(types.ClientNotification(types.CancelledNotification(
            method="notifications/cancelled", params=types.CancelledNotificationParams(requestId=session._request_id - 1))))
    at = time.monotonic()
    await session.send_ping()
    require(time.monotonic() - at < 1, "a ping is answered")
    error, _, trial = await call(session, "gate", {"workload": "softmax", "candidate": "not a candidate", **QUICK})
    took = time.monotonic() - began
    require(not error and trial["verdict"]["status"] == "compile_error" and took < 30,
            f"the cancelled trial was killed: the next verdict was there {took:.1f} s after its start")


async def check_ping_while_busy(session, source):
    async with anyio.create_task_group() as group:
        done = []

        async def gate():
            done.append(await call(session, "gate", {"workload": "softmax", "candidate": source, **QUICK}))

        group.start_soon(gate)
        await anyio.sleep(0.3)
        at = time.monotonic()
        await session.send_ping()
        require(time.monotonic() - at < 1 and not done, "a ping is answered while the gate is busy")
    require(not done[0][0], "and the gate's answer comes after it")


async def check_run(session, source, expected):
    tools = {tool.name for tool in (await session.list_tools()).tools}
    require(tools == TOOLS - {"gate"} | {"submit_to_run", "run_status"},
            "a server with a run offers submit_to_run and run_status instead of gate")
    error, _, data = await call(session, "run_status")
    require(not error and len(data["steps"]) == expected, f"the run has {expected} steps")
    return data


async def submit(session, source, **arguments):
    return await call(session, "submit_to_run", {"candidate": source, **QUICK, **arguments})


async def check_submissions(session, source):
    await check_run(session, source, 0)
    error, _, data = await submit(session, source, title="naive", dollars=0.5)
    require(not error and data["step"] == 1 and data["steps"][0]["outcome"] == "valid", "a submission is a step")
    error, text, _ = await submit(session, source, dollars=0.6)
    require(error and text.startswith("The budget"), "the budget is not passed")
    error, text, _ = await submit(session, source, parent_step=9)
    require(error and "no step 9" in text, "a parent that is no step is an error")


async def check_submissions_go_on(session, source):
    await check_run(session, source, 1)
    error, text, data = await submit(session, source + "\n// again\n", title="again", parent_step=1)
    require(not error and data["step"] == 2 and data["ending"].startswith("step_limit"), "the run goes on after a restart, to its limit")
    error, text, _ = await submit(session, source)
    require(error and "has ended" in text, "a run that has ended takes nothing")


async def check_newest(cli, workspace):
    """The revision without sessions, with clients that have it: each request says its version."""
    try:
        from mcp.client.client import Client
    except ImportError:
        print("This client has sessions only.")
        return
    parameters = StdioServerParameters(command=str(cli), args=["mcp", "--workspace", str(workspace)])
    async with Client(stdio_client(parameters)) as client:
        print("protocol", client.protocol_version, "without a session")
        require(client.protocol_version == LATEST, f"the newest version that this client has, {LATEST}, is spoken")
        await check_offers(client)
        error, _, data = await call(client, "list_workloads")
        require(not error and data["workloads"], "tools are called without a session")


async def check_too_long(cli, workspace):
    """A request of more than 16 MiB is answered, so that the client does not wait for ever."""
    async def body(session):
        with anyio.fail_after(60):
            try:
                await call(session, "gate", {"workload": "softmax", "candidate": "x" * (17 << 20)})
                require(False, "a request of 17 MiB is refused")
            except TimeoutError:
                raise
            except Exception as problem:
                require("16 MiB" in str(problem), "a request of 17 MiB is refused, with its id")
        await session.send_ping()

    await serve(cli, workspace, [], body)


async def serve(cli, workspace, more, body, *arguments):
    parameters = StdioServerParameters(command=str(cli), args=["mcp", "--workspace", str(workspace), *more])
    async with stdio_client(parameters) as (read, write):
        async with ClientSession(read, write) as session:
            answer = (await session.initialize()).model_dump(by_alias=True, mode="json")
            print("protocol", answer["protocolVersion"], "with", answer["serverInfo"]["name"], answer["serverInfo"]["version"])
            return await body(session, *arguments)


async def everything(cli, workspace):
    async def first(session):
        tools = {tool.name for tool in (await session.list_tools()).tools}
        require(tools == TOOLS, "tools/list offers " + ", ".join(sorted(tools)))
        await check_offers(session)
        source = await check_lookups(session)
        runs = await check_gate(session, source)
        if runs:
            await check_ping_while_busy(session, source)
            await check_cancel(session, source)
        return source if runs else None

    source = await serve(cli, workspace, [], first)
    await check_newest(cli, workspace)
    await check_too_long(cli, workspace)
    if source:
        run = ["--run", "agent", "--workload", "softmax", "--platform", "pocl", "--max-steps", "2", "--cap-dollars", "1"]
        await serve(cli, workspace, run, check_submissions, source)
        await serve(cli, workspace, ["--run", "agent"], check_submissions_go_on, source)


def main():
    cli, repository = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        workspace = pathlib.Path(folder)
        shutil.copytree(repository / "workloads" / "softmax", workspace / "workloads" / "softmax")
        shutil.copytree(repository / "skills", workspace / "skills")
        began = time.monotonic()
        asyncio.run(everything(cli, workspace))
        print(f"All right, in {time.monotonic() - began:.1f} s.")


if __name__ == "__main__":
    main()
