// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/texttable.h"

#include "core/base/listtext.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

namespace {

std::vector<std::string> platformsOf(const Workspace &workspace, const std::string &workload)
{
    std::vector<std::string> platforms;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (lineage.workload == workload)
            platforms.push_back(lineage.platform);
    }
    return platforms;
}

std::vector<std::string> providersOf(const workload::Workload &workload)
{
    std::vector<std::string> providers;
    for (const workload::Reference &reference : workload.references)
        providers.push_back(reference.provider);
    return providers;
}

json summary(const Workspace &workspace, const workload::Workload &workload)
{
    std::vector<std::string> cases;
    for (const workload::Case &c : workload.cases)
        cases.push_back(c.name);
    return {{"name", workload.name},
            {"title", workload.title},
            {"cases", cases},
            {"references", providersOf(workload)},
            {"oracle", workload.oracle},
            {"platforms", platformsOf(workspace, workload.name)}};
}

json caseDetails(const workload::Case &c)
{
    json out = {{"name", c.name}, {"axes", c.axes}, {"exact", c.exact}, {"drawn", json::object()}};
    for (const auto &[axis, range] : c.drawn) {
        out["axes"].erase(axis);
        out["drawn"][axis] = {{"from", range.low}, {"to", range.high}, {"step", range.step}};
    }
    return out;
}

json details(const Workspace &workspace, const workload::Workload &workload)
{
    json out = summary(workspace, workload);
    out["description"] = workload.description;
    out["axes"] = workload.axes;
    out["cases"] = json::array();
    for (const workload::Case &c : workload.cases)
        out["cases"].push_back(caseDetails(c));
    out["tensors"] = json::array();
    for (const workload::Tensor &tensor : workload.tensors) {
        std::vector<std::string> shape;
        for (const kernel::Expression &extent : tensor.shape)
            shape.push_back(extent.text());
        out["tensors"].push_back({{"name", tensor.name},
                                  {"role", tensor.role == workload::Role::Input ? "input" : "output"},
                                  {"dtype", kernel::toString(tensor.dtype)},
                                  {"shape", shape},
                                  {"description", tensor.description}});
    }
    out["references"] = json::array();
    for (const workload::Reference &reference : workload.references)
        out["references"].push_back({{"provider", reference.provider},
                                     {"op", reference.op},
                                     {"surface", kernel::toString(reference.device)}});
    out["tolerance"] = {{"rel_l2", workload.tolerance.relL2},
                        {"rtol", workload.tolerance.rtol},
                        {"atol", workload.tolerance.atol},
                        {"row_sum", workload.tolerance.rowSum},
                        {"rounds_between", workload.tolerance.roundsBetween}};
    out["flops"] = workload.flops.text();
    out["least_flops"] = workload.leastFlops().text();
    out["bytes"] = workload.bytes.text();
    return out;
}

std::string extentText(const workload::Case &c, const std::string &axis, std::int64_t extent)
{
    const auto drawn = c.drawn.find(axis);
    if (drawn == c.drawn.end())
        return std::to_string(extent);
    const workload::AxisRange &range = drawn->second;
    return std::to_string(range.low) + " … " + std::to_string(range.high)
           + (range.step == 1 ? "" : " by " + std::to_string(range.step));
}

std::string axesText(const workload::Case &c)
{
    std::string text;
    for (const auto &[name, extent] : c.axes)
        text += (text.empty() ? "" : ", ") + name + " = " + extentText(c, name, extent);
    return text + (c.exact ? " (exact)" : "");
}

void printDetails(const Workspace &workspace, const workload::Workload &workload)
{
    std::printf("%s: %s\n%s\n\n", workload.name.c_str(), workload.title.c_str(),
                workload.description.c_str());
    TextTable tensors({{"TENSOR"}, {"ROLE"}, {"TYPE"}, {"SHAPE"}});
    for (const workload::Tensor &tensor : workload.tensors) {
        std::string shape;
        for (const kernel::Expression &extent : tensor.shape)
            shape += (shape.empty() ? "" : " × ") + extent.text();
        tensors.addRow({tensor.name, tensor.role == workload::Role::Input ? "input" : "output",
                        kernel::toString(tensor.dtype), shape});
    }
    TextTable cases({{"CASE"}, {"AXES"}});
    for (const workload::Case &c : workload.cases)
        cases.addRow({c.name, axesText(c) + (&c == &workload.cases.front() ? " (timed)" : "")});
    std::printf("%s\n%s\n", tensors.text().c_str(), cases.text().c_str());
    std::printf("Oracle: %s. Vendor references: %s.\n", workload.oracle.c_str(),
                workload.references.empty() ? "none" : joined(providersOf(workload)).c_str());
    std::printf("FLOP of a run: %s%s. Bytes of a run, at least: %s.\n", workload.flops.text().c_str(),
                workload.fewestFlops ? (", at least " + workload.fewestFlops->text()).c_str() : "",
                workload.bytes.text().c_str());
    const std::vector<std::string> platforms = platformsOf(workspace, workload.name);
    std::printf("Lineages: %s.\n", platforms.empty() ? "none yet" : joined(platforms).c_str());
}

int listWorkloads(Session &session)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    if (session.json()) {
        json out{{"workloads", json::array()}};
        for (const workload::Workload &workload : workspace->workloads)
            out["workloads"].push_back(summary(*workspace, workload));
        session.print(out);
        return exitOk;
    }
    TextTable table(
        {{"WORKLOAD"}, {"TITLE"}, {"CASES", TextTable::Align::Right}, {"REFERENCES"}, {"LINEAGES"}});
    for (const workload::Workload &workload : workspace->workloads)
        table.addRow({workload.name, workload.title, std::to_string(workload.cases.size()),
                      joined(providersOf(workload)), joined(platformsOf(*workspace, workload.name))});
    std::printf("%s", table.isEmpty() ? "There are no workloads.\n" : table.text().c_str());
    return exitOk;
}

/// Runs the verb on the workload of that name.
int withWorkload(Session &session, const std::string &name,
                 const std::function<int(const Workspace &, const workload::Workload &)> &verb)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    if (const workload::Workload *workload = workspace->findWorkload(name))
        return verb(*workspace, *workload);
    return session.unknownName("workload", name, workspace->workloadNames());
}

int show(Session &session, const std::string &name)
{
    return withWorkload(session, name,
                        [&session](const Workspace &workspace, const workload::Workload &workload) {
                            if (session.json())
                                session.print(details(workspace, workload));
                            else
                                printDetails(workspace, workload);
                            return exitOk;
                        });
}

int check(Session &session, const std::string &name)
{
    return withWorkload(session, name, [&session](const Workspace &, const workload::Workload &workload) {
        return checkWorkload(session, workload);
    });
}

} // namespace

void addWorkloadCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "workload", "The operators to optimize");
    session.addVerb(*group, "list", "All workloads of the workspace",
                    [&session] { return listWorkloads(session); });
    const auto name = std::make_shared<std::string>();
    session
        .addVerb(*group, "show", "One workload: tensors, cases, tolerance, references",
                 [&session, name] { return show(session, *name); })
        ->add_option("workload", *name, "Name of the workload")
        ->required();
    session
        .addVerb(
            *group, "check",
            "Compare outputs that take no work with the oracle (exit status 1 when the timed case takes one)",
            [&session, name] { return check(session, *name); })
        ->add_option("workload", *name, "Name of the workload")
        ->required();
    addNewWorkload(*group, session);
    addProblemImport(*group, session);
}

} // namespace klineage::cli
