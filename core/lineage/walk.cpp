// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/walk.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/files/tomlreader.h"
#include "core/trial/trialfile.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace klineage::lineage {

namespace {

namespace fs = std::filesystem;
using files::TomlTable;

constexpr std::size_t maxTomlBytes = std::size_t{1} << 20;

WalkState readState(const TomlTable &table, const std::vector<WalkState> &before)
{
    WalkState state;
    state.id = table.string("id");
    state.title = table.string("title");
    state.sha256 = table.string("sha256");
    state.trial = table.string("trial", "");
    const bool taken = std::any_of(before.begin(), before.end(),
                                   [&](const WalkState &other) { return other.id == state.id; });
    if (table.has("id") && (!isStateId(state.id) || taken))
        table.fail("id", "'" + state.id
                             + "' is no id of its own; expected 1 to 32 letters, digits, '-' or '_', once.");
    if (table.has("sha256") && !files::isSha256Hex(state.sha256))
        table.fail("sha256", "this is no sha-256; expected 64 hexadecimal digits in lower case.");
    return state;
}

Transition readTransition(const TomlTable &table)
{
    Transition transition;
    transition.from = table.string("from");
    transition.to = table.string("to");
    transition.category = table.string("category");
    transition.locus = table.string("locus");
    transition.summary = table.string("summary");
    transition.card = table.string("card", "");
    return transition;
}

bool areChained(const Walk &walk)
{
    if (walk.transitions.size() + 1 != walk.states.size())
        return false;
    for (std::size_t i = 0; i < walk.transitions.size(); ++i) {
        if (walk.transitions[i].from != walk.states[i].id || walk.transitions[i].to != walk.states[i + 1].id)
            return false;
    }
    return true;
}

void readTrials(Walk &walk, const fs::path &path)
{
    Result<gate::TrialFile> file = gate::readTrialFile(path);
    if (!file)
        return walk.notices.push_back(file.error().message);
    walk.trials = std::move(file->trials);
    std::move(file->notices.begin(), file->notices.end(), std::back_inserter(walk.notices));
}

void checkTrials(Walk &walk)
{
    for (const WalkState &state : walk.states) {
        const gate::Trial *trial = walk.trialOf(state);
        if (!trial && !state.trial.empty())
            walk.notices.push_back(state.id + ": its trial " + state.trial + " is not in trials.jsonl.");
        if (trial && trial->candidate != state.sha256)
            walk.notices.push_back(state.id + ": its trial " + state.trial + " measured another file.");
        if (trial && trial->workload != walk.workload)
            walk.notices.push_back(state.id + ": its trial is of the workload '" + trial->workload + "'.");
    }
}

} // namespace

const gate::Trial *Walk::trialOf(const WalkState &state) const
{
    const auto found = std::find_if(trials.begin(), trials.end(),
                                    [&](const gate::Trial &trial) { return trial.id == state.trial; });
    return state.trial.empty() || found == trials.end() ? nullptr : &*found;
}

std::optional<gate::Interval> Walk::gainOf(std::size_t state) const
{
    const gate::Trial *trial = trialOf(states.at(state));
    const gate::Comparison *comparison = trial ? trial->comparison("parent") : nullptr;
    if (state == 0 || !comparison || trial->parent != states[state - 1].sha256)
        return std::nullopt;
    return comparison->speedup;
}

Result<Walk> parseWalk(std::string_view text, const std::string &fileName)
{
    Result<files::TomlDocument> document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    Walk walk;
    walk.workload = root.string("workload");
    walk.platform = root.string("platform");
    walk.title = root.string("title");
    walk.origin = root.string("origin");
    walk.commit = root.string("commit");
    walk.file = root.string("file");
    walk.licence = root.string("licence");
    walk.author = root.string("author");
    root.require("state");
    for (const TomlTable &table : root.tables("state"))
        walk.states.push_back(readState(table, walk.states));
    for (const TomlTable &table : root.tables("transition"))
        walk.transitions.push_back(readTransition(table));
    if (!walk.states.empty() && !areChained(walk))
        root.fail(TextPosition{}, "the transitions do not lead from each state to the next; expected one "
                                  "between each two neighbours, in their order.");
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return walk;
}

Result<Walk> readWalk(const fs::path &directory)
{
    const fs::path path = directory / "walk.toml";
    const Result<std::string> text = files::readFile(path, maxTomlBytes);
    if (!text)
        return tl::unexpected(text.error());
    Result<Walk> walk = parseWalk(*text, path.string());
    if (!walk)
        return walk;
    walk->name = directory.filename().string();
    if (const fs::path of = directory.parent_path().parent_path().filename(); of != walk->workload)
        walk->notices.push_back("walk.toml names the workload '" + walk->workload + "', but lies in '"
                                + of.string() + "'.");
    readTrials(*walk, directory / "trials.jsonl");
    checkTrials(*walk);
    return walk;
}

std::vector<Result<Walk>> readWalks(const fs::path &workloadDirectory)
{
    std::vector<fs::path> folders;
    std::error_code none; // no folder: no walks
    for (fs::directory_iterator entry(workloadDirectory / "walks", none), end; !none && entry != end;
         entry.increment(none)) {
        std::error_code ignored;
        if (entry->is_directory(ignored))
            folders.push_back(entry->path());
    }
    std::sort(folders.begin(), folders.end());
    std::vector<Result<Walk>> walks;
    for (const fs::path &folder : folders)
        walks.push_back(readWalk(folder));
    return walks;
}

} // namespace klineage::lineage
