// SPDX-License-Identifier: GPL-3.0-or-later
// The verbs that make a run of one kind: `lineage deoptimize`, `card lift`, `card admit`.
#include "app/cli/commands.h"
#include "app/cli/runstart.h"

#include "core/run/drive/start.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

namespace klineage::cli {

namespace {

namespace fs = std::filesystem;

struct LearnOptions {
    StartOptions start;
    std::string name;
    std::string target;
    std::vector<std::string> lineages;
    int rejections = run::rejectionsOption.absent;
    int repairs = run::repairsOption.absent;
    int attempts = run::attemptsOption.absent;
    int within = run::withinOption.absent;
    bool again = false;
};

const char *const deoptimizeFooter =
    "Each round asks which optimization to remove (category and locus) and for the simpler kernel, gates it, and has the optimization\n"
    "derived forward again on the simpler kernel by a conversation that never sees the stronger one. A step is kept when what was derived\n"
    "is correct and at most --within percent slower or faster than the stronger kernel; everything else is stored as a rejected attempt.\n"
    "With exec and manual, each \"rederive\" question wants an author without memory of the others: whoever has seen the stronger\n"
    "kernel, a person or a conversation that goes on, cannot derive it independently.\n"
    "The lineage is written to workloads/WORKLOAD/lineages/PLATFORM[-NAME]/, also when the run is stopped: `run resume` goes on with it.\n"
    "Exit status: 0 it ended by itself, 1 it was stopped, 3 the gate or the author failed.";

const char *const liftFooter =
    "Transitions with one category and similar locus and effect make one card. What cites evidence that was not given, "
    "claims figures that\nno cited trial holds or does not pass the lint is sent back once and then refused. "
    "A card that says what another says already becomes\n"
    "evidence of that one. All are hypotheses: `card admit` tries them, a person approves them.";

const char *const admitFooter =
    "The author is given the card and the target, nothing else. With exec and manual, each such run wants an author without memory of\n"
    "other runs: from one that has seen a stronger kernel of the target, a gain does not show that the card was enough.\n"
    "The card's verification log gets one line: it admits the card when the candidate is correct, gains against the target, and the\n"
    "target had no part in the card. A person's approval is separate.\n"
    "Exit status: 0 the effect was observed, 1 it was not or the run was stopped, 3 the gate or the author failed.";

void put(StartOptions &start, const char *name, const std::string &value)
{
    start.options.push_back(std::string(name) + '=' + value);
}

/// The exit status, and in id the run that was made.
int begin(const Session &session, const StartOptions &start, std::string *id = nullptr)
{
    const auto prepared = prepareRun(session, start);
    if (!prepared)
        return prepared.error();
    if (id)
        *id = prepared->settings.id;
    return beginRun(session, prepared->workspace, prepared->settings, start.pool);
}

int deoptimize(const Session &session, const LearnOptions &options)
{
    StartOptions start = options.start;
    start.kind = "deoptimize";
    put(start, run::rejectionsOption.name, std::to_string(options.rejections));
    put(start, run::repairsOption.name, std::to_string(options.repairs));
    put(start, run::withinOption.name, std::to_string(options.within));
    if (!options.name.empty())
        put(start, "name", options.name);
    return begin(session, start);
}

int lift(const Session &session, const LearnOptions &options)
{
    // Says also which lineages cannot be read; all the keys together are the run's subject.
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
    StartOptions start = options.start;
    start.kind = "admit";
    put(start, "target", options.target);
    put(start, run::attemptsOption.name, std::to_string(options.attempts));
    std::string id;
    const int status = begin(session, start, &id);
    if (status != exitOk)
        return status;
    const Result<fs::path> root = session.workspaceRoot();
    const Result<run::RunRecord> record =
        root ? run::readRun(*root / "runs" / id) : tl::unexpected(root.error());
    return record && record->ending.code == "complete" ? exitOk : exitNegative;
}

void addCount(CLI::App &verb, const char *name, int &value, const char *text, const run::CountOption &range)
{
    verb.add_option(name, value, text)->check(CLI::Range(range.least, range.most))->capture_default_str();
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
    addCount(*verb, "--steps", options->start.steps, "Accepted steps at most (0: no limit)", run::learnSteps);
    addCount(*verb, "--rejections", options->rejections, "Give up after so many rejections in a row",
             run::rejectionsOption);
    addCount(*verb, "--repairs", options->repairs, "Further tries at deriving a step again",
             run::repairsOption);
    addCount(*verb, "--within", options->within,
             "Percent that what was derived again may be slower than the stronger kernel", run::withinOption);
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
    addCount(*verb, "--steps", options->start.steps, "Groups of transitions at most (0: all)",
             run::learnSteps);
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
             run::attemptsOption);
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
