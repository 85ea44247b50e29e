// SPDX-License-Identifier: GPL-3.0-or-later
// Problems of other benchmarks as workloads: `workload import`.
#include "app/cli/commands.h"
#include "app/cli/importreport.h"
#include "app/cli/interrupt.h"

#include "core/interop/problems/importproblems.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace klineage::cli {

namespace fs = std::filesystem;

namespace {

struct ProblemArguments {
    std::string from;
    std::vector<std::string> values;
    interop::ProblemOptions options;
};

int importProblemsFrom(const Session &session, ProblemArguments arguments)
{
    for (const std::string &text : arguments.values) {
        const auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
            return session.usage("'" + text + "' is no NAME=VALUE, as in --set M=512.");
        arguments.options.draft.values[text.substr(0, equals)] = text.substr(equals + 1);
    }
    const Result<fs::path> root =
        arguments.options.dryRun ? session.workspaceRoot() : session.workspaceToWrite();
    if (!root)
        return session.fail(root.error());
    const InterruptWatcher interrupt;
    const auto entries =
        interop::importProblems(arguments.from, *root / "workloads", arguments.options, interrupt.token());
    if (!entries)
        return entries.error().code == ErrorCode::NotFound ? session.usage(entries.error().message)
                                                           : session.fail(entries.error());
    return printImport(session, *entries, {"workload", "", arguments.options.dryRun});
}

} // namespace

void addProblemImport(CLI::App &group, Session &session)
{
    const auto taken = std::make_shared<ProblemArguments>();
    CLI::App *verb = session.addVerb(group, "import", "Problems of other benchmarks, as workloads",
                                     [&session, taken] { return importProblemsFrom(session, *taken); });
    verb->footer(
        "Reads definitions of FlashInfer Trace and SOL-ExecBench with the workloads beside them, and KernelBench's Python "
        "files, and says of each that it passes over why. A problem's Python becomes the oracle; it runs in a confined "
        "process, with KLINEAGE_PYTHON or python3, and needs there what it imports (torch, numpy). Exit status 1: nothing "
        "was imported.");
    verb->add_option("from", taken->from, "Folder of problems, or one file")->required();
    verb->add_option(
            "--set", taken->values,
            "NAME=VALUE of an axis or a number, in place of the workloads'; of a line of a KernelBench file that assigns it "
            "(--set M=512)")
        ->allow_extra_args(false);
    verb->add_option("--shapes", taken->options.draft.shapes,
                     "How many of a definition's shapes become cases, besides drawn ones")
        ->check(CLI::Range(1, 32))
        ->capture_default_str();
    verb->add_flag("--dry-run", taken->options.dryRun, "Say what would be imported, and write nothing");
}

} // namespace klineage::cli
