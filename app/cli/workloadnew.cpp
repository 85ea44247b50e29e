// SPDX-License-Identifier: GPL-3.0-or-later
// `workload new`: an operator of one's own from a Python function.
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/texttable.h"

#include "core/base/listtext.h"
#include "core/files/atomicfile.h"
#include "core/files/utf8text.h"
#include "core/interop/problems/proof.h"
#include "core/interop/problems/pythonfunction.h"
#include "core/interop/problems/storeworkload.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace klineage::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const char *const workloadNewFooter =
    "The function takes numpy arrays, torch tensors or nested lists, whichever its file imports, and returns the outputs. Its head says\n"
    "the shapes, or the options do:\n"
    "    def run(x: \"f32[R, C]\", weight: \"f32[C]\", eps=1e-6) -> \"f32[R, C]\":\n"
    "Parameters with a number as default are numbers; several outputs are annotated as a tuple of such texts. The file becomes the\n"
    "oracle, reference.py, which runs in a confined process. It is run before anything is written: on the timed shape, on drawn ones\n"
    "and on rows of different scale; an oracle that is not deterministic, or whose outputs an output without work matches, is refused.\n"
    "With --replace it stands in the place of a workload of that name: workload.toml and reference.py are copied to replaced-1 (or the next\n"
    "number) in its folder, and its lineages stay, gated by the old definition.\n"
    "Example: klineage-cli workload new rmsnorm.py --size R=4096 --size C=1024 --flops '4 * R * C'\n"
    "Exit status: 0 it was written (with --dry-run: it could be), 1 what the function does was refused, 2 wrong usage, 3 the environment\n"
    "failed.";

struct NewWorkloadOptions {
    std::string file;
    std::string name;
    std::string title;
    std::vector<std::string> sizes;
    interop::FunctionOptions function;
    bool replaces = false;
    bool dryRun = false;
};

/// What the new workload stands in the place of.
struct Replaced {
    bool isThere = false;
    fs::path kept;                     ///< where the old files are now; empty when nothing was written
    std::vector<std::string> lineages; ///< folders of lineages that were gated by the old ones
};

std::string shapeText(const workload::Tensor &tensor)
{
    std::vector<std::string> extents;
    for (const kernel::Expression &extent : tensor.shape)
        extents.push_back(extent.text());
    return kernel::toString(tensor.dtype) + std::string("[") + joined(extents) + ']';
}

std::string sizesText(const workload::Case &c)
{
    std::string text;
    for (const auto &[axis, extent] : c.axes) {
        const auto drawn = c.drawn.find(axis);
        text += (text.empty() ? "" : ", ") + axis + " = " + std::to_string(extent);
        if (drawn != c.drawn.end())
            text += " … " + std::to_string(drawn->second.high);
    }
    return text;
}

/// As a command line has to say it.
std::string placeOption(const fs::path &root)
{
    std::error_code problem;
    const auto found = findWorkspace(fs::current_path(problem));
    return found && fs::equivalent(*found, root, problem) ? "" : " --workspace " + root.string();
}

Replaced whatIsThere(const fs::path &folder)
{
    Replaced replaced;
    std::error_code problem;
    replaced.isThere = fs::exists(folder, problem);
    for (fs::directory_iterator it(folder / "lineages", problem), end; !problem && it != end;
         it.increment(problem))
        replaced.lineages.push_back(it->path().filename().string());
    std::sort(replaced.lineages.begin(), replaced.lineages.end());
    return replaced;
}

void printReplaced(const Replaced &replaced, const std::string &name)
{
    if (!replaced.isThere)
        return;
    if (replaced.kept.empty())
        std::printf("\nThe workload %s would be replaced.\n", name.c_str());
    else
        std::printf("\nWhat it replaces was kept in %s.\n", replaced.kept.c_str());
    if (!replaced.lineages.empty())
        std::printf(
            "Its lineages (%s) were gated by the old definition; `klineage-cli lineage jobs %s/%s` gates one again.\n",
            joined(replaced.lineages).c_str(), name.c_str(), replaced.lineages.front().c_str());
}

void printNew(const NewWorkloadOptions &options, const workload::Workload &workload,
              const std::vector<std::string> &notes, const fs::path &root, const Replaced &replaced)
{
    TextTable tensors({{"TENSOR"}, {"ROLE"}, {"SHAPE"}});
    for (const workload::Tensor &tensor : workload.tensors)
        tensors.addRow(
            {tensor.name, tensor.role == workload::Role::Input ? "input" : "output", shapeText(tensor)});
    TextTable cases({{"CASE"}, {"SIZES"}});
    for (const workload::Case &c : workload.cases)
        cases.addRow({c.name, sizesText(c) + (&c == &workload.cases.front() ? " (timed)" : "")});
    std::printf("%s\n%s\n", tensors.text().c_str(), cases.text().c_str());
    for (const std::string &note : notes)
        std::printf("note: %s\n", note.c_str());
    std::printf("The oracle gives the same values twice, and outputs that take no work do not match them.\n");
    printReplaced(replaced, workload.name);
    if (options.dryRun)
        return;
    const std::string name = workload.name;
    const std::string after = " --workload " + name + placeOption(root);
    std::printf(
        "\nWrote the workload %s into %s. Next:\n"
        "  klineage-cli lineage new KERNEL%s --dry-run   # the plan that is proposed for a kernel of yours, .cl or .cu\n"
        "  klineage-cli lineage new KERNEL%s             # gate it; it becomes K00\n"
        "Content, tolerance and further cases are edited in workload.toml; `klineage-cli workload check %s` looks again.\n",
        name.c_str(), (root / "workloads" / name).c_str(), after.c_str(), after.c_str(), name.c_str());
}

int makeWorkload(const Session &session, NewWorkloadOptions options)
{
    for (const std::string &text : options.sizes) {
        const auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
            return session.usage("'" + text + "' is no NAME=VALUE, as in --size R=4096.");
        options.function.values[text.substr(0, equals)] = text.substr(equals + 1);
    }
    const Result<std::string> source = files::readFile(options.file, workload::maxOracleSourceBytes / 2);
    if (!source)
        return session.usage(source.error().message);
    if (!files::isUtf8Text(*source))
        return session.usage("'" + options.file + "' is no text.");
    const Result<fs::path> root = options.dryRun ? session.workspaceRoot() : session.workspaceToWrite();
    if (!root)
        return session.fail(root.error());
    const std::string name =
        interop::slugOf(options.name.empty() ? fs::path(options.file).stem().string() : options.name);
    if (!options.name.empty() && name != options.name)
        return session.usage("'" + options.name
                             + "' is no name of a workload: it has lower-case letters, digits, '_' and '-'.");
    const fs::path folder = *root / "workloads" / name;
    Replaced replaced = whatIsThere(folder);
    if (replaced.isThere && !options.replaces)
        return session.usage("There is a workload '" + name
                             + "' already; --name gives another name, --replace puts this one in its place.");

    const InterruptWatcher interrupt;
    Result<interop::Draft> draft =
        interop::draftOfFunction(name, *source, options.function, interrupt.token());
    if (draft && !options.title.empty())
        draft->workload.title = options.title;
    Status proved = draft ? interop::prove(*draft, interrupt.token()) : Status(tl::unexpected(draft.error()));
    if (proved && !options.dryRun && replaced.isThere) {
        Result<fs::path> kept = interop::keepReplaced(folder);
        if (!kept)
            return session.fail(kept.error());
        replaced.kept = std::move(*kept);
    }
    if (proved && !options.dryRun)
        proved = interop::storeWorkload(*root / "workloads", draft->workload);
    if (!proved && proved.error().code == ErrorCode::InvalidInput) {
        if (session.json())
            session.print({{"ok", false}, {"workload", json()}, {"reason", proved.error().message}});
        std::fprintf(stderr, "klineage-cli: %s\n", proved.error().message.c_str());
        return exitNegative;
    }
    if (!proved)
        return session.fail(proved.error());
    if (session.json())
        session.print({{"ok", true},
                       {"workload", draft->workload.name},
                       {"toml", workload::writeWorkload(draft->workload)},
                       {"notes", draft->notes},
                       {"kept", replaced.kept.empty() ? json() : json(replaced.kept.string())},
                       {"lineages", replaced.lineages},
                       {"written", !options.dryRun}});
    else
        printNew(options, draft->workload, draft->notes, *root, replaced);
    return exitOk;
}

} // namespace

void addNewWorkload(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<NewWorkloadOptions>();
    CLI::App *verb = session.addVerb(group, "new", "An operator of your own, from a Python function",
                                     [&session, options] { return makeWorkload(session, *options); });
    verb->footer(workloadNewFooter);
    verb->add_option("file", options->file, "A Python file with the function")->required();
    verb->add_option("--name", options->name, "Of the workload; left out: the file's");
    verb->add_option("--title", options->title, "For people; left out: the name");
    verb->add_option("--function", options->function.function, "Which function of the file")
        ->capture_default_str();
    verb->add_option(
            "--size", options->sizes,
            "NAME=VALUE of an axis where it is timed, or of a parameter that is a number (repeatable)")
        ->allow_extra_args(false);
    verb->add_option("--input", options->function.inputs,
                     "NAME=TYPE[EXTENT, …]: the shape of a parameter that is not annotated (repeatable)")
        ->allow_extra_args(false);
    verb->add_option("--output", options->function.outputs,
                     "The same of what it returns, in order (repeatable)")
        ->allow_extra_args(false);
    verb->add_option("--flops", options->function.flops, "Operations of one run, over the axes: '4 * R * C'");
    verb->add_flag(
        "--replace", options->replaces,
        "Put it in the place of the workload of that name, whose files are kept beside it in replaced-1");
    verb->add_flag("--dry-run", options->dryRun,
                   "Run the function, say what would be written, and write nothing");
}

} // namespace klineage::cli
