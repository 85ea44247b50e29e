// SPDX-License-Identifier: GPL-3.0-or-later
// The verbs that make a run of one kind: `lineage deoptimize`, `card lift`, `card admit`.
#include "app/cli/commands.h"
#include "app/cli/runstart.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace klineage::cli {

namespace {

namespace fs = std::filesystem;

struct LearnOptions {
    StartOptions start;
    std::string name;
    std::string target;
    std::vector<std::string> lineages;
    int rejections = 5;
    int repairs = 2;
    int attempts = 3;
    int within = 3;
    bool again = false;
};

const char *const deoptimizeFooter =
    "Each round asks which optimization to remove (category and locus) and for the simpler kernel, gates it, and has the optimization\n"
    "derived forward again on the simpler kernel by a conversation that never sees the stronger one. A step is kept when what was derived\n"
    "is correct and at most --within percent slower than the stronger kernel; everything else is stored as a rejected attempt.\n"
    "The lineage is written to workloads/WORKLOAD/lineages/PLATFORM[-NAME]/, also when the run is stopped: `run resume` goes on with it.\n"
    "Exit status: 0 it ended by itself, 1 it was stopped, 3 the gate or the author failed.";

const char *const liftFooter =
    "Transitions with one category and similar locus and effect make one card. What cites evidence that was not given, claims figures that\n"
    "no cited trial holds or does not pass the lint is sent back once and then refused. A card that says what another says already becomes\n"
    "evidence of that one. All are hypotheses: `card admit` tries them, a person approves them.";

const char *const admitFooter =
    "The author is given the card and the target, nothing else. The card's verification log gets one line: it admits the card when the\n"
    "candidate is correct, gains against the target, and the target had no part in the card. A person's approval is separate.\n"
    "Exit status: 0 the effect was observed, 1 it was not or the run was stopped, 3 the gate or the author failed.";

void put(StartOptions &start, const char *name, const std::string &value)
{
    start.options.push_back(std::string(name) + '=' + value);
}

int begin(const Session &session, const StartOptions &start)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const auto settings = settingsFor(session, *workspace, start);
    if (!settings)
        return settings.error();
    return beginRun(session, *workspace, *settings, start.launcher);
}

int deoptimize(const Session &session, const LearnOptions &options)
{
    StartOptions start = options.start;
    start.kind = "deoptimize";
    put(start, "rejections", std::to_string(options.rejections));
    put(start, "repairs", std::to_string(options.repairs));
    put(start, "within_percent", std::to_string(options.within));
    if (!options.name.empty())
        put(start, "name", options.name);
    return begin(session, start);
}

int lift(const Session &session, const LearnOptions &options)
{
    // Names are checked here, before a run is created; all the keys together are its subject.
    if (const auto chosen = chooseLineages(session, options.lineages); !chosen)
        return chosen.error();
    StartOptions start = options.start;
    start.kind = "lift";
    for (const std::string &key : options.lineages)
        start.subject += (start.subject.empty() ? "" : ",") + key;
    if (options.again)
        put(start, "again", "1");
    return begin(session, start);
}

int admit(const Session &session, const LearnOptions &options)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    if (!workspace->findCard(options.start.subject)) {
        std::vector<std::string> known;
        for (const skills::CardRecord &record : workspace->cards)
            known.push_back(record.card.name);
        return session.unknownName("card", options.start.subject, known);
    }
    StartOptions start = options.start;
    start.kind = "admit";
    std::error_code ignored;
    const bool isFile = fs::is_regular_file(options.target, ignored);
    const std::string target = isFile ? fs::absolute(options.target, ignored).string() : options.target;
    put(start, "target", target);
    put(start, "attempts", std::to_string(options.attempts));
    auto settings = settingsFor(session, *workspace, start);
    if (!settings)
        return settings.error();
    if (isFile) {
        const Result<kernel::Candidate> candidate = kernel::readCandidate(target);
        if (!candidate)
            return session.usage(candidate.error().message);
        settings->surface = kernel::toString(candidate->surface);
    }
    if (settings->workload.empty() || settings->platform.empty())
        return session.usage("'" + options.target
                             + "' is no state of a lineage; for a file, say --workload and --platform too.");
    const int status = beginRun(session, *workspace, *settings, start.launcher);
    if (status != exitOk)
        return status;
    const Result<run::RunRecord> record = run::readRun(workspace->root / "runs" / settings->id);
    return record && record->ending.starts_with("complete") ? exitOk : exitNegative;
}

void addCount(CLI::App &verb, const char *name, int &value, const char *text, int least)
{
    verb.add_option(name, value, text)->check(CLI::Range(least, 1000))->capture_default_str();
}

void addGateOption(CLI::App &verb, LearnOptions &options)
{
    verb.add_option(
            "--option", options.start.options,
            "NAME=VALUE: seeds, rounds, profile_seconds, timeout_seconds, max_output_tokens (repeatable)")
        ->allow_extra_args(false);
}

void addDeoptimize(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<LearnOptions>();
    CLI::App *verb = session.addVerb(group, "deoptimize", "Take a kernel apart, step by step, into a lineage",
                                     [&session, options] { return deoptimize(session, *options); });
    verb->footer(deoptimizeFooter);
    verb->add_option("subject", options->start.subject,
                     "K*: WORKLOAD/LINEAGE (its last state), WORKLOAD/LINEAGE/STATE, or a candidate file")
        ->required();
    verb->add_option("--workload", options->start.workload, "Name of the workload (for a file)");
    verb->add_option("--platform", options->start.platform, "Platform, as in pocl or sm90 (for a file)");
    verb->add_option(
        "--name", options->name,
        "Name of the new lineage, after the platform (needed when the platform has one already)");
    addCount(*verb, "--steps", options->start.steps, "Accepted steps at most (0: no limit)", 0);
    addCount(*verb, "--rejections", options->rejections, "Give up after so many rejections in a row", 1);
    addCount(*verb, "--repairs", options->repairs, "Further tries at deriving a step again", 0);
    verb->add_option("--within", options->within,
                     "Percent that what was derived again may be slower than the stronger kernel")
        ->check(CLI::Range(0, 100))
        ->capture_default_str();
    addAuthorOptions(*verb, options->start);
    addGateOption(*verb, *options);
}

void addLift(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<LearnOptions>();
    CLI::App *verb = session.addVerb(group, "lift", "Lift transitions of lineages into cards",
                                     [&session, options] { return lift(session, *options); });
    verb->footer(liftFooter);
    verb->add_option("lineages", options->lineages, "WORKLOAD/LINEAGE … (default: all)");
    verb->add_flag("--again", options->again, "Also transitions that some card rests on already");
    addCount(*verb, "--steps", options->start.steps, "Groups of transitions at most (0: all)", 0);
    addAuthorOptions(*verb, options->start);
    addGateOption(*verb, *options);
}

void addAdmit(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<LearnOptions>();
    CLI::App *verb = session.addVerb(group, "admit", "Try a card on a kernel that had no part in it",
                                     [&session, options] { return admit(session, *options); });
    verb->footer(admitFooter);
    verb->add_option("card", options->start.subject, "Name of the card")->required();
    verb->add_option(
            "--target", options->target,
            "What to apply it to: WORKLOAD/LINEAGE/STATE, WORKLOAD/LINEAGE (its last state), or a candidate file")
        ->required();
    verb->add_option("--workload", options->start.workload, "Name of the workload (for a file)");
    verb->add_option("--platform", options->start.platform, "Platform, as in pocl or sm90 (for a file)");
    addCount(*verb, "--attempts", options->attempts, "Candidates at most; each sees the verdict of the last",
             1);
    addAuthorOptions(*verb, options->start);
    addGateOption(*verb, *options);
}

} // namespace

void addLearnCommands(CLI::App &app, Session &session)
{
    addDeoptimize(*app.get_subcommand("lineage"), session);
    addLift(*app.get_subcommand("card"), session);
    addAdmit(*app.get_subcommand("card"), session);
}

} // namespace klineage::cli
