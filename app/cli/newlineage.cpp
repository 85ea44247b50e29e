// SPDX-License-Identifier: GPL-3.0-or-later
// `lineage new`: a lineage begun from somebody's kernel.
#include "app/cli/commands.h"
#include "app/cli/gaterequest.h"
#include "app/cli/interrupt.h"
#include "app/cli/poolchoice.h"

#include "core/base/suggest.h"
#include "core/kernel/candidatetext.h"
#include "core/kernel/outline/hostcode.h"
#include "core/kernel/outline/siblings.h"
#include "core/lineage/newlineage.h"
#include "core/workload/guess/guess.h"
#include "core/workspace/starter.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct NewOptions {
    std::string file;
    lineage::NewLineage lineage;
    std::string kernel;
    std::string grid;
    std::string block;
    std::string shared;
    std::vector<std::string> args;
    std::vector<std::string> tunables;
    PoolChoice pool;
    bool dryRun = false;
    bool ungated = false;
    bool fromTemplate = false;
};

const char *const newLineageFooter =
    "What is not said is proposed: the kernel, the arguments by the names of tensors and axes, then by type and order, and a grid that\n"
    "covers the first output. Of a .cu with host code the launch says it, as far as it can be read; the host code is cut off, kernels become\n"
    "extern \"C\", and #include \"FILE\" of its folder is put in its place, so that the state is one file. --dry-run prints the candidate file with that plan, and what is wrong with it. A file that has a plan\n"
    "already is taken with it; options that are given replace its parts.\n"
    "The kernel is gated on this machine, or where --launcher or --pool says, and becomes K00 when it is correct; otherwise nothing is\n"
    "written.\n"
    "Example: klineage-cli lineage new softmax.cl --workload softmax --name mine --grid R --block 64 --arg x --arg y --arg 'int C'\n"
    "Exit status: 0 the lineage was written (with --dry-run: the plan is valid), 1 the verdict or the plan says no, 2 wrong usage, 3 the\n"
    "environment failed.";

using Usage = tl::unexpected<int>;

/// The file's code, and its plan as a draft when it has one that a draft can hold.
struct Source {
    kernel::Surface surface;
    std::string text;
    bool hasPlan = false;
    std::optional<workload::PlanDraft> draft;
    std::vector<kernel::HostLaunch> launches; ///< of host code that came with it and was cut off
    std::vector<std::string> notices;         ///< what was done to the text, sentences
};

tl::expected<Source, int> readSource(const Session &session, const std::string &file)
{
    const Result<std::string> text = kernel::readCandidateText(file);
    if (!text)
        return Usage(session.fail(text.error()));
    const Result<kernel::WithSiblings> whole = kernel::withSiblings(*text, file);
    if (!whole)
        return Usage(session.usage(whole.error().message));
    Source source;
    source.text = whole->text;
    source.notices = whole->notices;
    source.hasPlan = kernel::planCommentOf(source.text).has_value();
    if (source.hasPlan) {
        const Result<kernel::Candidate> candidate = kernel::parseCandidate(source.text, file);
        if (!candidate)
            return Usage(session.usage(candidate.error().message));
        source.surface = candidate->surface;
        source.draft = workload::draftOf(*candidate);
        return source;
    }
    const auto surface = kernel::surfaceOfFile(file);
    if (!surface)
        return Usage(session.usage("'" + file + "' is no kernel: expected a file that ends in "
                                   + quotedList(kernel::surfaceExtensions()) + '.'));
    source.surface = *surface;
    kernel::DeviceSource device = kernel::deviceSourceOf(source.text, *surface);
    source.text = std::move(device.code);
    source.launches = std::move(device.launches);
    source.notices.insert(source.notices.end(), device.notices.begin(), device.notices.end());
    return source;
}

/// What was done to the text and what of its launches is not in the plan.
void sayNotices(const Session &session, const Source &source)
{
    if (session.json())
        return;
    for (const std::string &notice : source.notices)
        std::fprintf(stderr, "klineage-cli: %s\n", notice.c_str());
}

/// "BM=32,64,128": the first is not the default, the one in the code is.
tl::expected<kernel::Tunable, int> readTunable(const Session &session, const std::string &text,
                                               const kernel::SourceOutline &outline)
{
    kernel::Tunable tunable;
    tunable.name = text.substr(0, text.find('='));
    const auto constant = std::find_if(outline.constants.begin(), outline.constants.end(),
                                       [&](const auto &one) { return one.name == tunable.name; });
    if (constant == outline.constants.end())
        return Usage(session.usage("The code has no '#define " + tunable.name + "' with a whole number."));
    tunable.defaultValue = constant->value;
    for (const std::string &part :
         workload::splitList(text.size() > tunable.name.size() ? text.substr(tunable.name.size() + 1) : "")) {
        std::int64_t value = 0;
        const auto [stopped, problem] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (problem != std::errc() || stopped != part.data() + part.size())
            return Usage(session.usage("--tunable " + text + ": '" + part + "' is no whole number."));
        tunable.values.push_back(value);
    }
    if (std::find(tunable.values.begin(), tunable.values.end(), tunable.defaultValue) == tunable.values.end())
        tunable.values.insert(tunable.values.begin(), tunable.defaultValue);
    return tunable;
}

/// The candidate's text, with what the options say in the place of what was guessed or is in the file.
tl::expected<std::string, int> composePlan(const Session &session, const NewOptions &options, Source &source,
                                           const workload::Workload &workload,
                                           std::vector<workload::FieldProblem> &problems)
{
    const bool saysNothing = options.kernel.empty() && options.grid.empty() && options.block.empty()
                             && options.shared.empty() && options.args.empty() && options.tunables.empty();
    if (source.hasPlan && (saysNothing || !source.draft)) {
        if (!saysNothing)
            return Usage(session.usage("The plan of '" + options.file
                                       + "' says more than options can: change it in the file."));
        problems = workload::checkCandidateText(source.text, options.file, workload);
        return source.text;
    }
    workload::PlanDraft draft;
    const std::string &code = source.draft ? source.draft->code : source.text;
    const kernel::SourceOutline outline = kernel::outlineSource(code, source.surface);
    if (source.draft) {
        draft = *source.draft;
    } else {
        std::vector<std::string> names;
        const kernel::KernelFunction *chosen =
            options.kernel.empty() ? workload::likelyKernel(outline, source.launches) : nullptr;
        for (const kernel::KernelFunction &kernel : outline.kernels) {
            names.push_back(kernel.name);
            if (kernel.name == options.kernel)
                chosen = &kernel;
        }
        if (!chosen && !options.kernel.empty())
            return Usage(session.unknownName("kernel", options.kernel, names));
        if (!chosen)
            return Usage(session.usage("'" + options.file + "' has no kernel function."));
        workload::PlanGuess guess =
            workload::guessPlan(code, source.surface, *chosen, workload, source.launches);
        draft = std::move(guess.draft);
        source.notices.insert(source.notices.end(), guess.notices.begin(), guess.notices.end());
        if (source.launches.size() > 1)
            source.notices.push_back("The host launches " + std::to_string(source.launches.size())
                                     + " times; the plan that is proposed has one launch, of " + chosen->name
                                     + ". Write the others into the plan by hand.");
    }
    if (!options.kernel.empty())
        draft.kernel = options.kernel;
    if (!options.grid.empty())
        draft.grid = workload::splitList(options.grid);
    if (!options.block.empty())
        draft.block = workload::splitList(options.block);
    if (!options.shared.empty())
        draft.shared = options.shared;
    if (!options.args.empty())
        draft.args = options.args;
    for (const std::string &text : options.tunables) {
        const auto tunable = readTunable(session, text, outline);
        if (!tunable)
            return Usage(tunable.error());
        draft.tunables.push_back(*tunable);
    }
    problems = workload::checkDraft(draft, workload);
    return workload::candidateText(draft);
}

int reportPlan(const Session &session, const NewOptions &options, const Source &source,
               const std::string &text, const std::vector<workload::FieldProblem> &problems)
{
    if (session.json()) {
        json found = json::array();
        for (const workload::FieldProblem &problem : problems)
            found.push_back({{"field", problem.field}, {"message", problem.message}});
        session.print({{"candidate", text}, {"problems", found}, {"notices", source.notices}});
    } else if (options.dryRun) {
        std::printf("%s", text.c_str());
    }
    for (const workload::FieldProblem &problem : problems)
        std::fprintf(stderr, "klineage-cli: %s%s%s\n", problem.field.c_str(),
                     problem.field.empty() ? "" : ": ", problem.message.c_str());
    return problems.empty() ? exitOk : exitNegative;
}

int writeNew(const Session &session, const NewOptions &options, const workload::Workload &workload,
             const lineage::NewLineage &wanted, const std::string &text,
             const std::optional<gate::Trial> &trial)
{
    const auto lineage = lineage::beginLineage(workload.directory, wanted, text, trial);
    if (!lineage && lineage.error().code != ErrorCode::Io)
        return session.usage(lineage.error().message);
    if (!lineage)
        return session.fail(lineage.error());
    if (session.json())
        session.print({{"lineage", lineage->key()},
                       {"directory", lineage->directory.string()},
                       {"trial", trial ? json(*trial) : json()}});
    else
        std::printf("Began the lineage %s in %s%s.\n", lineage->key().c_str(), lineage->directory.c_str(),
                    options.ungated ? "; its K00 is not gated yet" : "");
    return exitOk;
}

int gateNew(const Session &session, const NewOptions &options, kernel::Surface surface,
            const workload::Workload &workload, const std::string &text)
{
    gate::GateRequest request;
    request.workloadDirectory = workload.directory;
    request.candidateText = text;
    request.candidateName = std::string("K00") + surface.language().extension;
    const InterruptWatcher interrupts;
    const auto pool = openPool(session, options.pool);
    if (!pool)
        return pool.error();
    const Result<gate::Trial> trial = (*pool)->run(request, interrupts.token(), showProgress);
    if (::isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[K");
    if (!trial)
        return session.fail(trial.error());
    if (!session.json())
        printTrial(*trial);
    if (trial->verdict.status != gate::VerdictStatus::Correct) {
        if (session.json())
            session.print({{"lineage", json()}, {"trial", *trial}});
        std::fprintf(stderr, "klineage-cli: Nothing was written: a lineage begins with a correct kernel.\n");
        return exitStatusOf(trial->verdict.status);
    }
    lineage::NewLineage wanted = options.lineage;
    wanted.platform = trial->environment.platform;
    return writeNew(session, options, workload, wanted, text, *trial);
}

int beginNew(const Session &session, const NewOptions &options)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    auto source = readSource(session, options.file);
    if (!source)
        return source.error();
    const std::string &name = options.lineage.workload;
    const workload::Workload *found = workspace->findWorkload(name);
    const auto &templates = templateWorkloads();
    const auto made = std::find_if(templates.begin(), templates.end(),
                                   [&](const workload::Workload &one) { return one.name == name; });
    if (!found && (!options.fromTemplate || made == templates.end()))
        return session.unknownName("workload", name, workspace->workloadNames());
    workload::Workload workload = found ? *found : *made;
    std::vector<workload::FieldProblem> problems;
    const auto text = composePlan(session, options, *source, workload, problems);
    if (!text)
        return text.error();
    sayNotices(session, *source);
    if (options.dryRun || !problems.empty())
        return reportPlan(session, options, *source, *text, problems);
    if (options.ungated && options.lineage.platform.empty())
        return session.usage("--ungated needs --platform, as in pocl or sm90: no gate says it.");
    // Before anything is gated; the platform is the gate's to say.
    lineage::NewLineage check = options.lineage;
    if (check.platform.empty())
        check.platform = "platform";
    if (const Status free = lineage::checkName(workload.directory, check); found && !free)
        return session.usage(free.error().message);
    if (!found) {
        if (Status added = addTemplateWorkload(workspace->root, name); !added)
            return session.fail(added.error());
        workload.directory = workspace->root / "workloads" / name;
    }
    return options.ungated ? writeNew(session, options, workload, options.lineage, *text, std::nullopt)
                           : gateNew(session, options, source->surface, workload, *text);
}

} // namespace

void addNewLineage(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<NewOptions>();
    CLI::App *verb = session.addVerb(group, "new", "Begin a lineage from a kernel of your own: its K00",
                                     [&session, options] { return beginNew(session, *options); });
    verb->footer(newLineageFooter);
    verb->add_option("file", options->file, "A .cu or .cl file, with a plan or without")->required();
    verb->add_option("--workload", options->lineage.workload, "What it computes: the name of the workload")
        ->required();
    verb->add_flag("--template", options->fromTemplate,
                   "Make the workload from the program's template of that name where there is none");
    verb->add_option("--name", options->lineage.name, "Of the lineage, beside its platform's own");
    verb->add_option("--kernel", options->kernel, "Which kernel of the file is launched");
    verb->add_option("--grid", options->grid, "Blocks or work-groups, x first: 'ceil_div(C, 64), R'");
    verb->add_option("--block", options->block, "Threads or work-items of one, x first: '64'");
    verb->add_option("--shared", options->shared, "CUDA: bytes of dynamic shared memory");
    verb->add_option("--arg", options->args,
                     "An argument as in a plan, in order: x, 'int C', 'local 256' (repeat for each)")
        ->take_all()
        ->allow_extra_args(false);
    verb->add_option("--tunable", options->tunables,
                     "NAME=VALUE,…: makes a #define of the code a tunable (repeatable)")
        ->allow_extra_args(false);
    verb->add_option("--title", options->lineage.title, "Of the lineage");
    verb->add_option("--origin", options->lineage.origin, "Where the kernel comes from, and its licence");
    verb->add_option("--platform", options->lineage.platform, "With --ungated: the lineage's platform");
    verb->add_flag("--dry-run", options->dryRun, "Print the candidate file with its plan, and write nothing");
    verb->add_flag("--ungated", options->ungated, "Write the lineage without a trial");
    addPoolOptions(*verb, options->pool);
}

} // namespace klineage::cli
