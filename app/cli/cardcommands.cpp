// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cardjson.h"
#include "app/cli/cardjudge.h"
#include "app/cli/cardprobe.h"
#include "app/cli/cards.h"
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/retrieval.h"
#include "app/cli/texttable.h"

#include "core/skills/store.h"
#include "core/talk/cardtext.h"
#include "core/workspace/citations.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <pwd.h>
#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;
using skills::CardRecord;
using skills::ReviewVerdict;

namespace {

struct CardOptions {
    std::string name;
    std::vector<std::string> names;
    std::string author;
    std::string reason;
    std::string event;
    bool strict = false;
};

std::string reviewText(const CardRecord &record)
{
    const skills::Review *review = record.standingReview();
    if (!review)
        return "none";
    std::string text = std::string(skills::toString(review->verdict)) + " by " + review->author;
    if (review->cardRevision != record.card.revision)
        text += " (of revision " + std::to_string(review->cardRevision) + ')';
    return text;
}

int listCards(const Session &session)
{
    const Result<skills::CardStore> store = openStore(session);
    if (!store)
        return session.fail(store.error());
    std::vector<Error> problems;
    const std::vector<CardRecord> records = store->readAll(&problems);
    for (const Error &problem : problems)
        std::fprintf(stderr, "klineage-cli: %s\n", problem.message.c_str());
    if (session.json()) {
        json out{{"cards", json::array()}};
        for (const CardRecord &record : records)
            out["cards"].push_back(cardSummaryJson(record));
        session.print(out);
        return exitOk;
    }
    TextTable table(
        {{"CARD"}, {"LIFE"}, {"REV", TextTable::Align::Right}, {"CATEGORY"}, {"REVIEW"}, {"INTENT"}});
    for (const CardRecord &record : records)
        table.addRow({record.card.name, skills::toString(record.life()), std::to_string(record.card.revision),
                      record.card.category, reviewText(record), record.card.intent.text});
    std::printf("%s", table.isEmpty() ? "There are no cards.\n" : table.text().c_str());
    return exitOk;
}

int listIndex(const Session &session)
{
    const Result<skills::CardStore> store = openStore(session);
    if (!store)
        return session.fail(store.error());
    std::string text;
    for (const CardRecord &record : store->readAll())
        text += policy::indexLine(record);
    if (session.json())
        session.print({{"index", text}});
    else
        std::printf("%s%s", text.empty() ? "" : policy::indexLegend, text.c_str());
    return exitOk;
}

void printHistory(const CardRecord &record)
{
    const std::set<std::string> reverted = record.revertedReviews();
    TextTable table(
        {{"EVENT"}, {"TIME"}, {"AUTHOR"}, {"REV", TextTable::Align::Right}, {"WHAT"}, {"REASON"}});
    for (const skills::Review &review : record.reviews) {
        std::string what = skills::toString(review.verdict);
        if (!review.reverts.empty())
            what += ' ' + review.reverts;
        if (reverted.count(review.id) > 0)
            what += " (taken back)";
        table.addRow({review.id, review.time, review.author, std::to_string(review.cardRevision), what,
                      review.reason});
    }
    if (!table.isEmpty())
        std::printf("\n%s", table.text().c_str());
}

/// What came of it wherever it was tried: a row a platform.
void printApplications(const run::ApplicationRecord &record, const std::string &card)
{
    const run::CardApplications *found = record.find(card);
    std::printf("\n");
    if (!found) {
        std::printf("Applications: none in the %d runs of this workspace.\n", record.runs);
    } else {
        constexpr auto right = TextTable::Align::Right;
        TextTable table({{"PLATFORM"},
                         {"SHOWN", right},
                         {"APPLIED", right},
                         {"GAINED", right},
                         {"NO GAIN", right},
                         {"LOST", right},
                         {"UNDECIDED", right},
                         {"WRONG", right},
                         {"MEDIAN GAIN", right}});
        for (const run::PlatformRecord &one : found->platforms) {
            const run::MedianFactor &factor = one.factor;
            table.addRow({one.platform, std::to_string(one.shown), std::to_string(one.applied),
                          std::to_string(one.gained), std::to_string(one.noGain), std::to_string(one.lost),
                          std::to_string(one.undecided), std::to_string(one.wrong),
                          factor.count == 0
                              ? "–"
                              : formatSpeedup(gate::Interval{factor.median, factor.low, factor.high}) + " of "
                                    + std::to_string(factor.count) + (factor.isSpan ? ", span" : "")});
        }
        std::printf("%s", table.text().c_str());
    }
    for (const Error &problem : record.problems)
        std::printf("Notice: %s\n", problem.message.c_str());
}

int show(const Session &session, const CardOptions &options)
{
    const Result<skills::CardStore> store = openStore(session);
    if (!store)
        return session.fail(store.error());
    const Result<CardRecord> record = store->read(options.name);
    if (!record)
        return failStore(session, *store, options.name, record.error());
    const run::ApplicationRecord applications =
        run::readApplications(store->directory().parent_path(), run::verificationLogs({*record}));
    if (session.json()) {
        json out = cardJson(*record);
        out["applications"] = applicationsJson(applications, options.name);
        session.print(out);
        return exitOk;
    }
    std::printf("%s", skills::writeSkillMarkdown(*record).c_str());
    printApplications(applications, options.name);
    std::printf("\nReview: %s\n", reviewText(*record).c_str());
    printHistory(*record);
    for (const std::string &notice : record->notices)
        std::printf("Notice: %s\n", notice.c_str());
    return exitOk;
}

/// Findings of the card itself, of its citations in the workspace, and of its generated file.
std::vector<skills::LintFinding> findingsOf(const Workspace &workspace, const CardRecord &record)
{
    std::vector<skills::LintFinding> findings =
        skills::lintCard(record.card, record.carrier, record.buildingBlock);
    for (skills::LintFinding &finding : lintCitations(workspace, record.card))
        findings.push_back(std::move(finding));
    for (const std::string &notice : record.notices)
        findings.push_back({skills::LintFinding::Severity::Warning, "files", notice});
    return findings;
}

int lint(const Session &session, const CardOptions &options)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    for (const std::string &name : options.names) {
        if (!workspace->findCard(name))
            return session.unknownName("card", name, workspace->cardNames());
    }
    json out{{"cards", json::array()}};
    bool ok = true;
    for (const std::string &name : options.names.empty() ? workspace->cardNames() : options.names) {
        json findings = json::array();
        for (const skills::LintFinding &finding : findingsOf(*workspace, *workspace->findCard(name))) {
            const bool isError = finding.severity == skills::LintFinding::Severity::Error;
            ok = ok && !isError && !options.strict;
            const char *severity = isError ? "error" : "warning";
            findings.push_back(
                {{"severity", severity}, {"field", finding.field}, {"message", finding.message}});
            if (!session.json())
                std::printf("%s: %s: %s: %s\n", name.c_str(), severity, finding.field.c_str(),
                            finding.message.c_str());
        }
        if (!session.json() && findings.empty())
            std::printf("%s: ok\n", name.c_str());
        out["cards"].push_back({{"name", name}, {"findings", findings}});
    }
    out["ok"] = ok;
    if (session.json())
        session.print(out);
    return ok ? exitOk : exitNegative;
}

int printEvent(const Session &session, const std::string &card, const skills::Review &event)
{
    if (session.json())
        session.print({{"card", card}, {"event", reviewJson(event, false)}});
    else
        std::printf("%s: %s%s%s by %s at revision %d (event %s)\n", card.c_str(),
                    skills::toString(event.verdict), event.reverts.empty() ? "" : " of ",
                    event.reverts.c_str(), event.author.c_str(), event.cardRevision, event.id.c_str());
    return exitOk;
}

int review(const Session &session, const CardOptions &options, ReviewVerdict verdict)
{
    const Result<skills::CardStore> store = openStore(session);
    if (!store)
        return session.fail(store.error());
    skills::Review review;
    review.author = options.author.empty() ? defaultAuthor() : options.author;
    review.reason = options.reason;
    review.verdict = verdict;
    const Result<skills::Review> event = store->review(options.name, review);
    return event ? printEvent(session, options.name, *event)
                 : failStore(session, *store, options.name, event.error());
}

int undo(const Session &session, const CardOptions &options, bool redo)
{
    const Result<skills::CardStore> store = openStore(session);
    if (!store)
        return session.fail(store.error());
    std::string target = options.event;
    if (target.empty()) {
        const Result<CardRecord> record = store->read(options.name);
        if (!record)
            return failStore(session, *store, options.name, record.error());
        const skills::Review *candidate = redo ? record->redoCandidate() : record->undoCandidate();
        if (!candidate) {
            const char *what = redo ? "redo" : "undo";
            session.fail(
                {ErrorCode::NotFound, "Card '" + options.name + "' has nothing to " + what + '.', {}});
            return exitNegative;
        }
        target = candidate->id;
    }
    const std::string author = options.author.empty() ? defaultAuthor() : options.author;
    const Result<skills::Review> event = store->revert(options.name, target, author);
    return event ? printEvent(session, options.name, *event)
                 : failStore(session, *store, options.name, event.error());
}

using Options = std::shared_ptr<CardOptions>;

void addName(CLI::App *verb, const Options &options)
{
    verb->add_option("card", options->name, "Name of the card")->required();
}

void addReviewVerb(CLI::App &group, Session &session, const std::string &name, const std::string &description,
                   ReviewVerdict verdict, bool needsReason)
{
    const auto options = std::make_shared<CardOptions>();
    CLI::App *verb = session.addVerb(group, name, description, [&session, options, verdict] {
        return review(session, *options, verdict);
    });
    addName(verb, options);
    verb->add_option("--author", options->author, "Who reviews (default: git's user.name, then the user)");
    verb->add_option("--reason", options->reason, "Why")->required(needsReason);
}

void addUndoVerb(CLI::App &group, Session &session, const std::string &name, const std::string &description,
                 bool redo)
{
    const auto options = std::make_shared<CardOptions>();
    CLI::App *verb = session.addVerb(group, name, description,
                                     [&session, options, redo] { return undo(session, *options, redo); });
    addName(verb, options);
    verb->add_option("--author", options->author,
                     "Who takes it back (default: git's user.name, then the user)");
    verb->add_option("--event", options->event, "Id of the event to take back (default: the newest)");
}

} // namespace

std::string defaultAuthor()
{
    if (const char *name = std::getenv("GIT_AUTHOR_NAME"); name && *name)
        return name;
    std::string author;
    if (FILE *git = ::popen("git config --get user.name 2>/dev/null", "r")) {
        char buffer[256] = {};
        if (std::fgets(buffer, sizeof buffer, git))
            author = buffer;
        ::pclose(git);
    }
    author.erase(author.find_last_not_of(" \n") + 1);
    if (!author.empty())
        return author;
    if (const char *user = std::getenv("USER"); user && *user)
        return user;
    const passwd *entry = ::getpwuid(::getuid());
    return entry ? entry->pw_name : std::to_string(::getuid());
}

Result<skills::CardStore> openStore(const Session &session)
{
    const Result<std::filesystem::path> root = session.workspaceRoot();
    if (!root)
        return tl::unexpected(root.error());
    return skills::CardStore(*root / "skills");
}

int failStore(const Session &session, const skills::CardStore &store, const std::string &name,
              const Error &error)
{
    if (error.code == ErrorCode::NotFound && !std::filesystem::exists(store.directory() / name)) {
        std::vector<std::string> known;
        for (const CardRecord &record : store.readAll())
            known.push_back(record.card.name);
        return session.unknownName("card", name, known);
    }
    session.fail(error);
    if (error.code == ErrorCode::Conflict)
        return exitNegative;
    return error.code == ErrorCode::NotFound ? exitUsage : exitEnvironment;
}

void addCardCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "card", "SkillCards: look, check, review");
    session.addVerb(*group, "list", "All cards of the workspace", [&session] { return listCards(session); });

    session.addVerb(*group, "index",
                    "A line for each card: intent, measured effect, needs, what it comes after",
                    [&session] { return listIndex(session); });
    addJudgeCommand(*group, session);
    addProbeCommand(*group, session);

    const auto shown = std::make_shared<CardOptions>();
    addName(session.addVerb(*group, "show", "One card with its evidence, verifications and review history",
                            [&session, shown] { return show(session, *shown); }),
            shown);

    const auto linted = std::make_shared<CardOptions>();
    CLI::App *lintVerb =
        session.addVerb(*group, "lint", "Check cards and what they cite (exit status 1 on errors)",
                        [&session, linted] { return lint(session, *linted); });
    lintVerb->add_option("cards", linted->names, "Names (default: all)");
    lintVerb->add_flag("--strict", linted->strict, "Warnings fail too");

    addReviewVerb(*group, session, "approve", "Record an approval of the current revision",
                  ReviewVerdict::Approve, false);
    addReviewVerb(*group, session, "reject", "Record a rejection of the current revision",
                  ReviewVerdict::Reject, true);
    addReviewVerb(*group, session, "needs-evidence", "Record what evidence is missing",
                  ReviewVerdict::NeedsEvidence, true);
    addUndoVerb(*group, session, "undo", "Take the newest review or edit back, by an event of its own",
                false);
    addUndoVerb(*group, session, "redo", "Take the newest undo back", true);
    addRetrieveCommand(*group, session);
    addCardExchange(*group, session);
}

} // namespace klineage::cli
