// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/mcp/tools.h"

#include "core/base/suggest.h"
#include "core/kernel/candidate.h"
#include "core/kernel/candidatetext.h"
#include "core/talk/trialtext.h"
#include "core/trial/analysis/analysis.h"

#include <algorithm>

namespace klineage::cli {

using mcp::Call;
using mcp::ToolResult;
using nlohmann::json;

namespace {

constexpr std::size_t mostHotspots = 20;

double wholeFraction(const gate::GateProgress &progress)
{
    const double stage = progress.stage == gate::Stage::Compile       ? 0
                         : progress.stage == gate::Stage::Correctness ? 1
                                                                      : 2;
    return (stage + std::clamp(progress.fraction, 0.0, 1.0)) / 3;
}

json number(const char *type, double least, double most, const std::string &description)
{
    return {{"type", type}, {"minimum", least}, {"maximum", most}, {"description", description}};
}

/// The text that a candidate is compared with: a state of a lineage, or given.
Result<std::string> parentText(const Workspace &workspace, const json &arguments)
{
    if (arguments.contains("parent") && arguments.contains("parent_state"))
        return fail(ErrorCode::InvalidInput, "Name the parent by its text or by its state, not by both.");
    if (!arguments.contains("parent_state"))
        return arguments.value("parent", "");
    const std::string citation = arguments.at("parent_state").get<std::string>();
    const std::size_t slash = citation.rfind('/');
    const lineage::Lineage *lineage =
        slash == std::string::npos ? nullptr : workspace.findLineage(citation.substr(0, slash));
    const lineage::State *state = lineage ? lineage->findState(citation.substr(slash + 1)) : nullptr;
    if (!state)
        return fail(ErrorCode::NotFound,
                    "'" + citation + "' names no state of a lineage; expected one as in sgemm/pocl/K02.");
    if (lineage->workload != arguments.at("workload").get<std::string>())
        return fail(ErrorCode::InvalidInput, "The state " + citation + " is of another workload.");
    return kernel::readCandidateText(lineage->directory / state->file);
}

ToolResult gateCandidate(GateDesk &desk, const json &arguments, const Call &call)
{
    const Result<Workspace> workspace = openWorkspace(desk.workspace());
    if (!workspace)
        return toolErrorOf(workspace.error());
    Result<gate::GateRequest> request =
        gateRequestOf(*workspace, arguments.at("workload").get<std::string>(), arguments);
    if (!request)
        return toolErrorOf(request.error());
    Result<std::string> parent = parentText(*workspace, arguments);
    if (!parent)
        return toolErrorOf(parent.error());
    request->parentText = std::move(*parent);
    request->place.platform = arguments.value("platform", "");
    const Result<gate::Trial> trial = desk.run(*request, call);
    if (!trial)
        return toolErrorOf(trial.error());
    return {policy::trialText(*trial), trialForAgents(*trial), false};
}

} // namespace

GateDesk::GateDesk(std::filesystem::path workspace, std::unique_ptr<gate::GatePool> gates)
    : m_workspace(std::move(workspace))
    , m_gates(std::move(gates))
{}

GateDesk::~GateDesk() = default;

Result<gate::Trial> GateDesk::run(const gate::GateRequest &request, const Call &call)
{
    return m_gates->run(request, call.stop, [&call](const gate::GateProgress &progress) {
        call.progress(wholeFraction(progress),
                      std::string(gate::toString(progress.stage)) + ": " + progress.text);
    });
}

json gateOptionsSchema()
{
    return {
        {"candidate",
         {{"type", "string"},
          {"minLength", 1},
          {"maxLength", kernel::maxCandidateBytes},
          {"description",
           "The whole candidate file: a comment block /*klineage … */ with the launch plan, then device "
           "code. get_lineage with a state shows one."}}},
        {"tunables",
         {{"type", "object"},
          {"additionalProperties", number("integer", -9e15, 9e15, "Value")},
          {"maxProperties", 64},
          {"description", "Values of tunables other than their defaults"}}},
        {"seeds", number("integer", 1, 20, "Fresh inputs a case; 3 when left out")},
        {"rounds", number("integer", 3, 1000, "Timing rounds, at least; 30 when left out")},
        {"profile_seconds",
         number("number", 0.1, 120, "Stop timing after this long at the latest; 10 when left out")},
        {"timeout_seconds", number("number", 1, 600, "Deadline of the whole trial; 120 when left out")},
        {"reference",
         {{"type", "boolean"}, {"description", "Time the vendor reference too; true when left out"}}},
        {"precise",
         {{"type", "boolean"},
          {"description",
           "Time on when the comparison with the parent is decided, to 0.2 % or profile_seconds; false when left out"}}},
        {"counters",
         {{"type", "boolean"}, {"description", "Read hardware counters after a correct verdict (CUDA)"}}}};
}

Result<gate::GateRequest> gateRequestOf(const Workspace &workspace, const std::string &name,
                                        const json &arguments)
{
    const workload::Workload *workload = workspace.findWorkload(name);
    if (!workload) {
        std::vector<std::string> known;
        for (const workload::Workload &other : workspace.workloads)
            known.push_back(other.name);
        return fail(ErrorCode::NotFound,
                    "There is no workload '" + name + "'; there is " + quotedList(known) + '.');
    }
    gate::GateRequest request;
    request.workloadDirectory = workload->directory;
    request.candidateText = arguments.at("candidate").get<std::string>();
    const Result<kernel::Candidate> candidate = kernel::parseCandidate(request.candidateText, "candidate");
    request.candidateName =
        std::string("candidate") + (candidate ? candidate->surface : kernel::Surface()).language().extension;
    const json tunables = arguments.value("tunables", json::object()); // items() refers to it
    for (const auto &[tunable, value] : tunables.items())
        request.tunables[tunable] = value.get<std::int64_t>();
    request.seeds = arguments.value("seeds", request.seeds);
    request.minRounds = arguments.value("rounds", request.minRounds);
    request.profileSeconds = arguments.value("profile_seconds", request.profileSeconds);
    request.deadlineSeconds = arguments.value("timeout_seconds", request.deadlineSeconds);
    request.quick = !arguments.value("precise", false);
    request.withReference = arguments.value("reference", true);
    request.counters = arguments.value("counters", false);
    return request;
}

json trialForAgents(const gate::Trial &trial)
{
    json out = trial;
    out.erase("samples");
    out.erase("seeds");
    if (out.contains("hotspots") && out["hotspots"].size() > mostHotspots)
        out["hotspots"].erase(out["hotspots"].begin() + mostHotspots, out["hotspots"].end());
    if (trial.latencyNs.value > 0)
        out["analysis"] = gate::analysisJson(gate::analyse(trial));
    return out;
}

json trialOutputSchema()
{
    const json text{{"type", "string"}};
    const json object{{"type", "object"}};
    json verdict = outputOf({{"status", text}});
    for (const char *key : {"reason", "message", "hint", "stage"})
        verdict["properties"][key] = text;
    for (const char *key : {"evidence", "comparisons"})
        verdict["properties"][key] = {{"type", "array"}};
    json schema = outputOf({{"id", text}, {"workload", text}, {"verdict", verdict}});
    schema["properties"]["latency_ns"] = object;
    schema["properties"]["environment"] = object;
    schema["properties"]["analysis"] = object;
    return schema;
}

mcp::Tool gateTool(const std::shared_ptr<GateDesk> &desk)
{
    json properties = gateOptionsSchema();
    properties["workload"] = {{"type", "string"},
                              {"minLength", 1},
                              {"maxLength", 64},
                              {"description", "Name of the workload that the candidate computes"}};
    properties["parent"] = {{"type", "string"},
                            {"maxLength", kernel::maxCandidateBytes},
                            {"description", "Text of the candidate to compare with, in paired rounds"}};
    properties["parent_state"] = {{"type", "string"},
                                  {"maxLength", 256},
                                  {"description", "Instead: a recorded state, as in sgemm/pocl/K02"}};
    properties["platform"] = {{"type", "string"},
                              {"maxLength", 64},
                              {"description", "Only on a gate of this platform, as in sm90 or pocl"}};
    return {
        "gate",
        "Gate a candidate",
        "Compiles a candidate, checks it against the oracle on every case with fresh inputs, and times it against its parent "
        "and the vendor reference. Returns the structured verdict: status (correct, compile_error, wrong, unsafe, suspect, "
        "timeout, crash, unavailable), evidence, a hint, latency with its interval, speedups and what bounds it. Takes "
        "seconds to minutes; can be cancelled. Nothing is recorded.",
        {{"type", "object"},
         {"properties", properties},
         {"required", {"workload", "candidate"}},
         {"additionalProperties", false}},
        true,
        true,
        [desk](const json &arguments, const Call &call) { return gateCandidate(*desk, arguments, call); },
        trialOutputSchema()};
}

} // namespace klineage::cli
