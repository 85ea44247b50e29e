// SPDX-License-Identifier: GPL-3.0-or-later
// Cards of other libraries in, and ours out: `card import`, `card export`.
#include "app/cli/commands.h"
#include "app/cli/importreport.h"

#include "core/files/atomicfile.h"
#include "core/interop/cards/importcards.h"
#include "core/interop/cards/richjson.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct ImportArguments {
    std::string from;
    interop::ImportOptions options;
};

struct ExportArguments {
    std::vector<std::string> names;
    std::string to;
    std::string form = "skill";
};

int importFrom(const Session &session, const ImportArguments &arguments)
{
    const Result<fs::path> root = session.workspaceRoot();
    if (!root)
        return session.fail(root.error());
    const skills::CardStore store(*root / "skills");
    const auto entries = interop::importCards(arguments.from, store, arguments.options);
    if (!entries)
        return entries.error().code == ErrorCode::Io ? session.fail(entries.error())
                                                     : session.usage(entries.error().message);
    return printImport(session, *entries, {"card", " as hypotheses", arguments.options.dryRun});
}

/// What the rich form says of a transition, from the lineage that is cited.
interop::FindTransition transitionsOf(const Workspace &workspace)
{
    return [&workspace](const skills::Citation &citation) -> std::optional<interop::CitedTransition> {
        const std::size_t slash = citation.rfind('/');
        const lineage::Lineage *lineage =
            slash == std::string::npos ? nullptr : workspace.findLineage(citation.substr(0, slash));
        const lineage::Transition *step =
            lineage ? lineage->transitionTo(citation.substr(slash + 1)) : nullptr;
        if (!step)
            return std::nullopt;
        const auto trialOf = [&](const std::string &id) -> const gate::Trial * {
            const lineage::State *state = lineage->findState(id);
            return state ? lineage->trialOf(*state) : nullptr;
        };
        const gate::Trial *before = trialOf(step->from);
        const gate::Trial *after = trialOf(step->to);
        return interop::CitedTransition{step->category, step->locus,
                                        before ? before->candidate : std::string(),
                                        after ? after->candidate : std::string(),
                                        after ? gate::toString(after->verdict.status) : std::string()};
    };
}

Status writeSkill(const fs::path &to, const skills::CardRecord &record)
{
    std::error_code problem;
    fs::create_directories(to / record.card.name, problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + (to / record.card.name).string() + "': " + problem.message() + '.');
    return files::writeFileAtomic(to / record.card.name / "SKILL.md", skills::writeSkillMarkdown(record));
}

int exportTo(const Session &session, const ExportArguments &arguments)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const std::vector<std::string> names = arguments.names.empty() ? workspace->cardNames() : arguments.names;
    const bool isSkill = arguments.form == "skill";
    nlohmann::ordered_json memory = nlohmann::ordered_json::array();
    for (const std::string &name : names) {
        const skills::CardRecord *record = workspace->findCard(name);
        if (!record)
            return session.unknownName("card", name, workspace->cardNames());
        if (!isSkill)
            memory.push_back(interop::richJson(*record, transitionsOf(*workspace)));
        else if (Status written = writeSkill(arguments.to, *record); !written)
            return session.fail(written.error());
    }
    if (!isSkill) {
        const std::string text = memory.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
        if (arguments.to == "-")
            std::printf("%s\n", text.c_str());
        else if (Status written = files::writeFileAtomic(arguments.to, text + '\n'); !written)
            return session.fail(written.error());
    }
    if (arguments.to == "-")
        return exitOk;
    if (session.json())
        session.print({{"cards", names}, {"to", arguments.to}});
    else
        std::printf("%zu cards written to %s\n", names.size(), arguments.to.c_str());
    return exitOk;
}

} // namespace

void addCardExchange(CLI::App &group, Session &session)
{
    const auto taken = std::make_shared<ImportArguments>();
    CLI::App *verb = session.addVerb(group, "import", "Cards of other libraries, as hypotheses",
                                     [&session, taken] { return importFrom(session, *taken); });
    verb->footer(
        "Reads KLineage's SKILL.md and rich JSON and skills of the Agent Skills standard, and says of each folder "
        "that it passes over why. What was read is kept beside the card. Exit status 1: nothing was imported.");
    verb->add_option("from", taken->from, "Folder of such cards, or one file")->required();
    verb->add_option("--origin", taken->options.origin, "Whose library it is (default: the folder's name)");
    verb->add_option(
        "--license", taken->options.license,
        "Of cards that say none (default: the first line of LICENSE in the folder, else unknown)");
    verb->add_flag("--dry-run", taken->options.dryRun, "Say what would be imported, and write nothing");

    const auto given = std::make_shared<ExportArguments>();
    verb = session.addVerb(group, "export", "Cards for other systems",
                           [&session, given] { return exportTo(session, *given); });
    verb->add_option("cards", given->names, "Names (default: all)");
    verb->add_option("--form", given->form,
                     "skill: a folder with SKILL.md each (Agent Skills); json: KLineage's rich JSON")
        ->check(CLI::IsMember({"skill", "json"}))
        ->capture_default_str();
    verb->add_option("--to", given->to, "Folder, of json a file; - is stdout")->required();
}

} // namespace klineage::cli
