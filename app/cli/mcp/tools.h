// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/mcp/tool.h"
#include "core/pool/gatepool.h"
#include "core/workspace/workspace.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace klineage::cli {

/// The schema of an object with at least these properties: what a tool returns when it is no error.
[[nodiscard]] nlohmann::json outputOf(nlohmann::json properties);
/// The schema of a trial as agents see it.
[[nodiscard]] nlohmann::json trialOutputSchema();

/// A sentence for the model: message and detail of an error.
[[nodiscard]] mcp::ToolResult toolErrorOf(const Error &error);

/// list_workloads, get_workload, get_lineage, get_card, retrieve_cards. Each reads the workspace anew, so that what others write is seen.
[[nodiscard]] std::vector<mcp::Tool> lookupTools(const std::filesystem::path &workspace);

/// The gate as the tools use it: one trial at a time, on the server's own thread; it is kept warm between trials.
class GateDesk
{
public:
    GateDesk(std::filesystem::path workspace, std::unique_ptr<gate::GatePool> gates);
    ~GateDesk();

    [[nodiscard]] const std::filesystem::path &workspace() const { return m_workspace; }
    [[nodiscard]] Result<gate::Trial> run(const gate::GateRequest &request, const mcp::Call &call);

private:
    std::filesystem::path m_workspace;
    std::unique_ptr<gate::GatePool> m_gates;
};

/// Properties of the schema that say how to gate: tunables, seeds, rounds, profile_seconds, timeout_seconds, reference, counters.
[[nodiscard]] nlohmann::json gateOptionsSchema();
/// The request of a candidate for a workload, with those options.
[[nodiscard]] Result<gate::GateRequest> gateRequestOf(const Workspace &workspace, const std::string &workload,
                                                      const nlohmann::json &arguments);
/// A trial without its seeds and raw samples: those are the gate's own.
[[nodiscard]] nlohmann::json trialForAgents(const gate::Trial &trial);

[[nodiscard]] mcp::Tool gateTool(const std::shared_ptr<GateDesk> &desk);

/// What `mcp` was told of the run that may be submitted to.
struct RunChoice {
    std::string run; ///< id of a run in runs/, or its folder
    std::string workload;
    std::string platform;
    int maxSteps = 0;
    double capDollars = 10;
};
/// submit_to_run and run_status. Opens the run, or creates it when it is not there and the workload and platform are given.
[[nodiscard]] Result<std::vector<mcp::Tool>> runTools(const std::shared_ptr<GateDesk> &desk,
                                                      const RunChoice &choice);

} // namespace klineage::cli
