// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/mcp/mcpcommand.h"

#include "app/cli/interrupt.h"
#include "app/cli/mcp/offers.h"
#include "app/cli/mcp/tools.h"
#include "app/cli/mcp/transport.h"
#include "app/cli/poolchoice.h"

#include "core/interop/mcp/server.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

namespace klineage::cli {

namespace {

const char *const instructions =
    "Optimize GPU kernels under a gate. A candidate is one text file: a launch plan in TOML in a comment block, then device code. "
    "Look at a workload (list_workloads, get_workload) and at recorded lineages (get_lineage; with a state: its source), retrieve "
    "cards for where the code stands (retrieve_cards), read them (get_card), write a candidate and gate it. Only the gate's verdict "
    "counts: correct on every case, and a speedup whose interval excludes 1. The resource klineage://format/candidate has the format of "
    "a candidate, klineage://loop the loop.";

int serve(const Session &session, const RunChoice &choice, const PoolChoice &poolChoice)
{
    const Result<std::filesystem::path> root = session.workspaceRoot();
    if (!root)
        return session.fail(root.error());
    if (const Result<Workspace> workspace = openWorkspace(*root); !workspace)
        return session.fail(workspace.error());
    else
        for (const Error &problem : workspace->problems)
            std::fprintf(stderr, "klineage-cli: %s\n", problem.message.c_str());
    const InterruptWatcher interrupts;
    auto pool = openPool(session, poolChoice);
    if (!pool)
        return pool.error();
    const auto desk = std::make_shared<GateDesk>(*root, std::move(*pool));
    std::vector<mcp::Tool> tools = lookupTools(*root);
    if (choice.run.empty()) {
        tools.push_back(gateTool(desk));
    } else { // trials beside the record would make its steps and dollars mean nothing
        Result<std::vector<mcp::Tool>> more = runTools(desk, choice);
        if (!more)
            return session.fail(more.error());
        for (mcp::Tool &tool : *more)
            tools.push_back(std::move(tool));
    }
    StdioTransport transport;
    mcp::Server server(
        {"klineage", "KLineage", KLINEAGE_VERSION, instructions}, std::move(tools),
        [&transport](const std::string &line) { transport.write(line); }, workspaceOffers(*root));
    transport.read(mcp::maxLineBytes, interrupts.token(),
                   [&server](std::string_view line, std::string_view tail) { server.receive(line, tail); });
    return exitOk;
}

} // namespace

void addMcpCommand(CLI::App &app, Session &session)
{
    const auto choice = std::make_shared<RunChoice>();
    const auto pool = std::make_shared<PoolChoice>();
    CLI::App *verb = session.addVerb(
        app, "mcp", "Serve workloads, lineages, cards and the gate to any agent (MCP over stdio)",
        [&session, choice, pool] { return serve(session, *choice, *pool); });
    addPoolOptions(*verb, *pool);
    verb->add_option(
        "--run", choice->run,
        "Let the agent submit to this run of runs/ instead of gating freely; it is created when --workload and --platform are given");
    verb->add_option("--workload", choice->workload, "Workload of a new run");
    verb->add_option("--platform", choice->platform, "Platform of a new run, as in pocl or sm90");
    verb->add_option("--max-steps", choice->maxSteps, "Submissions that a new run takes (0: no limit)")
        ->check(CLI::Range(0, 100000))
        ->capture_default_str();
    verb->add_option("--cap-dollars", choice->capDollars,
                     "Dollars of a new run, as the agent declares them with its submissions")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
}

} // namespace klineage::cli
