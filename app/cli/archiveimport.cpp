// SPDX-License-Identifier: GPL-3.0-or-later
// Archives of evolutionary searches as lineages: `lineage import`.
#include "app/cli/commands.h"
#include "app/cli/importreport.h"
#include "app/cli/interrupt.h"

#include "core/interop/archives/importarchive.h"
#include "core/pool/gatespec.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace klineage::cli {

namespace fs = std::filesystem;

namespace {

struct ArchiveArguments {
    std::string from;
    std::string workload;
    std::string surface;
    interop::ArchiveOptions options;
};

/// " --workspace 'DIR'" where the workspace is not found from the current folder.
std::string workspaceOption(const fs::path &root)
{
    std::error_code problem;
    const fs::path whole = fs::absolute(root, problem).lexically_normal();
    const fs::path below = fs::current_path(problem).lexically_relative(whole);
    if (!problem && !below.empty() && *below.begin() != "..")
        return {};
    return " --workspace " + gate::shellQuoted(whole.string());
}

/// How its states and attempts are gated: a file of jobs, the gate on this or another machine, the trials back.
std::vector<std::string> gateCommands(const std::string &key, const std::string &option)
{
    return {"klineage-cli lineage jobs " + key + option + " > jobs.jsonl",
            "klineage-gate batch jobs.jsonl --out trials.jsonl",
            "klineage-cli trials import trials.jsonl --lineage " + key + " --assign" + option};
}

int importArchiveFrom(const Session &session, ArchiveArguments arguments)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const workload::Workload *workload = workspace->findWorkload(arguments.workload);
    if (!workload)
        return session.unknownName("workload", arguments.workload, workspace->workloadNames());
    if (!arguments.surface.empty()) {
        arguments.options.surface = kernel::surfaceFromString(arguments.surface);
        if (!arguments.options.surface)
            return session.unknownName("surface", arguments.surface, kernel::surfaceNames());
    }
    for (const lineage::Lineage &lineage : workspace->lineages) {
        if (lineage.workload == workload->name)
            arguments.options.platforms.push_back(lineage.platform);
    }
    const InterruptWatcher interrupt;
    const auto entries =
        interop::importArchive(arguments.from, *workload, arguments.options, interrupt.token());
    if (!entries) {
        const ErrorCode code = entries.error().code;
        const bool isUsage =
            code == ErrorCode::NotFound || code == ErrorCode::InvalidInput || code == ErrorCode::Conflict;
        return isUsage ? session.usage(entries.error().message) : session.fail(entries.error());
    }
    return printImport(session, *entries,
                       {"lineage", "", arguments.options.dryRun,
                        gateCommands(entries->front().name, workspaceOption(workspace->root))});
}

} // namespace

void addArchiveImport(CLI::App &group, Session &session)
{
    const auto taken = std::make_shared<ArchiveArguments>();
    CLI::App *verb = session.addVerb(group, "import", "What a search of another system found, as a lineage",
                                     [&session, taken] { return importArchiveFrom(session, *taken); });
    verb->footer(
        "Reads a checkpoint of OpenEvolve (checkpoint_N, or a folder that has some: the newest), an SQLite file of ShinkaEvolve and a "
        "folder of AdaExplore's. The path to the best program becomes the states, other programs attempts; what could not be "
        "taken is named with its reason. Scores of the other system stand in titles and reasons and are no trials: nothing is gated, "
        "and the last line says how it can be. --json names each state and attempt, also with --dry-run. Exit status: 0 imported, 1 nothing "
        "was, 2 wrong usage or there is such a lineage, 3 the environment failed.");
    verb->add_option("from", taken->from, "Folder or file that the search left")->required();
    verb->add_option("--workload", taken->workload, "What its programs compute: the name of the workload")
        ->required();
    verb->add_option("--surface", taken->surface,
                     "What programs are written for that do not say it (default: what the best one says)");
    verb->add_option("--name", taken->options.name, "Of the lineage (default: the system's name)");
    verb->add_option("--platform", taken->options.platform,
                     "Of the lineage, as in pocl or sm90 (default: that of the workload's other lineages)");
    verb->add_option("--most", taken->options.most,
                     "How many programs at most; besides the path to the best those with the best scores")
        ->check(CLI::Range(std::size_t{1}, interop::mostArchivedPrograms))
        ->capture_default_str();
    verb->add_flag("--dry-run", taken->options.dryRun, "Say what would be imported, and write nothing");
}

} // namespace klineage::cli
