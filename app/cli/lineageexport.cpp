// SPDX-License-Identifier: GPL-3.0-or-later
// Lineages as data sets of other systems: `lineage export`.
#include "app/cli/commands.h"

#include "core/interop/traceset/exportlineage.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct DatasetArguments {
    std::vector<std::string> keys;
    std::string to;
    std::string form = "flashinfer";
    interop::DatasetOptions options;
};

struct ExportedLineage {
    std::string lineage;
    Result<interop::LineageDataset> made;
};

json datasetJson(const ExportedLineage &entry)
{
    if (!entry.made)
        return {{"lineage", entry.lineage}, {"reason", entry.made.error().message}};
    return {{"lineage", entry.lineage},           {"definition", entry.made->definition},
            {"workloads", entry.made->workloads}, {"solutions", entry.made->solutions},
            {"traces", entry.made->traces},       {"lost", entry.made->lost}};
}

void printDataset(const ExportedLineage &entry)
{
    if (!entry.made)
        return static_cast<void>(
            std::printf("%s: not written. %s\n", entry.lineage.c_str(), entry.made.error().message.c_str()));
    std::printf("%s: definition %s, workloads: %zu, solutions: %zu, traces: %zu\n", entry.lineage.c_str(),
                entry.made->definition.c_str(), entry.made->workloads, entry.made->solutions,
                entry.made->traces);
    for (const std::string &lost : entry.made->lost)
        std::printf("  %s\n", lost.c_str());
}

int exportDatasets(const Session &session, const DatasetArguments &arguments)
{
    if (!interop::isDatasetAuthor(arguments.options.author))
        return session.usage("An author is 1 to 64 letters, digits, '.', '-' or '_'.");
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const auto lineages = chooseLineages(session, arguments.keys);
    if (!lineages)
        return lineages.error();
    std::vector<ExportedLineage> entries;
    std::size_t written = 0;
    for (const lineage::Lineage &lineage : *lineages) {
        const workload::Workload *workload = workspace->findWorkload(lineage.workload);
        ExportedLineage entry{lineage.key(), workload
                                                 ? interop::datasetOf(lineage, *workload, arguments.options)
                                                 : fail(ErrorCode::NotFound, "Its workload cannot be read.")};
        if (entry.made) {
            if (const Status stored = interop::writeDataset(*entry.made, arguments.to); !stored)
                return stored.error().code == ErrorCode::Conflict ? session.usage(stored.error().message)
                                                                  : session.fail(stored.error());
            ++written;
        }
        entries.push_back(std::move(entry));
    }
    if (session.json()) {
        json out{{"to", arguments.to}, {"limits", interop::datasetLimits()}, {"lineages", json::array()}};
        for (const ExportedLineage &entry : entries)
            out["lineages"].push_back(datasetJson(entry));
        session.print(out);
    } else {
        for (const ExportedLineage &entry : entries)
            printDataset(entry);
        std::printf("%zu of %zu lineages written to %s\n", written, entries.size(), arguments.to.c_str());
        if (written > 0)
            std::printf("\nWhat FlashInfer Trace cannot say of any lineage:\n");
        for (const std::string &limit : written > 0 ? interop::datasetLimits() : std::vector<std::string>())
            std::printf("- %s\n", limit.c_str());
    }
    return written > 0 ? exitOk : exitNegative;
}

} // namespace

void addLineageExport(CLI::App &group, Session &session)
{
    const auto given = std::make_shared<DatasetArguments>();
    CLI::App *verb = session.addVerb(group, "export", "Lineages for other systems",
                                     [&session, given] { return exportDatasets(session, *given); });
    verb->footer(
        "Writes a data set of FlashInfer Trace (FlashInfer-Bench): the workload as a definition with its shapes, each "
        "candidate as a solution, each trial that the format can carry as a trace. What it cannot say is left out and "
        "listed. Exit status 1: nothing was written.");
    verb->add_option("lineages", given->keys, "WORKLOAD/PLATFORM … (default: all)");
    verb->add_option("--form", given->form, "flashinfer: a data set of FlashInfer Trace")
        ->check(CLI::IsMember({"flashinfer"}))
        ->capture_default_str();
    verb->add_option("--author", given->options.author, "Of the solutions, and the folder they lie in")
        ->capture_default_str();
    verb->add_option("--to", given->to, "Folder of the data set; other definitions in it stay")->required();
}

} // namespace klineage::cli
