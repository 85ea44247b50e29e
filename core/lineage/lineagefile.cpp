// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/identifier.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/lineage/lineage.h"

#include <algorithm>
#include <set>

namespace klineage::lineage {

namespace {

using files::TomlTable;

const std::vector<std::pair<std::string, std::string>> terminationWords{
    {"complete", "complete"},
    {"step_limit", "step_limit"},
    {"rejection_limit", "rejection_limit"},
    {"unknown", "unknown"}};

std::string readId(const TomlTable &table, const char *key, std::set<std::string> &taken)
{
    std::string id = table.string(key);
    if (!table.has(key))
        return id;
    if (!isStateId(id))
        table.fail(key, "'" + id + "' is no id; expected 1 to 32 letters, digits, '-' or '_'.");
    else if (!taken.insert(id).second)
        table.fail(key, "the id '" + id + "' is used twice; expected unique ids of states and attempts.");
    return id;
}

/// A file of the lineage's own folder: nothing that leads out of it.
void checkFileName(const TomlTable &table, const char *key, const std::string &name)
{
    const std::filesystem::path path(name);
    const bool leadsOut = std::find(path.begin(), path.end(), "..") != path.end();
    if (table.has(key) && (name.empty() || path.is_absolute() || leadsOut))
        table.fail(key, "'" + name + "' is no file of this folder; expected a relative path without '..'.");
}

std::string readFileName(const TomlTable &table)
{
    std::string name = table.string("file");
    checkFileName(table, "file", name);
    return name;
}

std::string readTrialId(const TomlTable &table, const char *key = "trial")
{
    std::string id = table.string(key, "");
    const bool isHex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!id.empty() && (id.size() != 16 || !isHex))
        table.fail(key, "'" + id + "' is no trial id; expected 16 lower-case hex digits.");
    return id;
}

void readRederived(const TomlTable &table, Transition &transition)
{
    transition.rederived = table.string("rederived", "");
    checkFileName(table, "rederived", transition.rederived);
    transition.rederivedTrial = readTrialId(table, "rederived_trial");
    transition.rederivedMatch = readTrialId(table, "rederived_match");
    if (transition.rederived.empty()
        && !(transition.rederivedTrial.empty() && transition.rederivedMatch.empty()))
        table.fail(
            table.position(),
            "the transition has a trial of a re-derived file, but not the file; expected 'rederived'.");
}

State readState(const TomlTable &table, std::set<std::string> &ids)
{
    State state;
    state.id = readId(table, "id", ids);
    state.file = readFileName(table);
    state.title = table.string("title");
    state.trial = readTrialId(table);
    return state;
}

Transition readTransition(const TomlTable &table, const std::vector<State> &states, std::size_t index)
{
    Transition transition;
    transition.from = table.string("from");
    transition.to = table.string("to");
    transition.category = table.string("category");
    transition.locus = table.string("locus");
    transition.summary = table.string("summary");
    transition.card = table.string("card", "");
    readRederived(table, transition);
    if (index + 1 >= states.size()) {
        table.fail(table.position(), "there are more transitions than steps between states; expected "
                                         + std::to_string(states.empty() ? 0 : states.size() - 1) + ".");
        return transition;
    }
    const auto expect = [&](const char *key, const std::string &found, const std::string &expected) {
        if (table.has(key) && found != expected)
            table.fail(key, "transition " + std::to_string(index + 1) + " has '" + key + "' = '" + found
                                + "'; expected '" + expected
                                + "', because transitions are chained in the order of the states.");
    };
    expect("from", transition.from, states[index].id);
    expect("to", transition.to, states[index + 1].id);
    return transition;
}

Attempt readAttempt(const TomlTable &table, const std::vector<State> &states, std::set<std::string> &ids)
{
    Attempt attempt;
    attempt.id = readId(table, "id", ids);
    attempt.parent = table.string("parent");
    attempt.file = readFileName(table);
    attempt.title = table.string("title");
    attempt.category = table.string("category", "");
    attempt.locus = table.string("locus", "");
    attempt.reason = table.string("reason");
    attempt.trial = readTrialId(table);
    const bool known =
        std::any_of(states.begin(), states.end(), [&](const State &s) { return s.id == attempt.parent; });
    if (table.has("parent") && !known)
        table.fail("parent", "'" + attempt.parent + "' is no state of this lineage; expected the id of one.");
    return attempt;
}

void writeStates(files::TomlWriter &out, const Lineage &lineage)
{
    for (const State &state : lineage.states) {
        out.beginArrayTable("state");
        out.string("id", state.id);
        out.string("file", state.file);
        out.string("title", state.title);
        out.optionalString("trial", state.trial);
    }
}

} // namespace

bool isStateId(std::string_view text)
{
    constexpr std::size_t maxIdLength = 32;
    return !text.empty() && text.size() <= maxIdLength && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
               || c == '-';
    });
}

Result<Lineage> parseLineage(std::string_view text, const std::string &fileName)
{
    Result<files::TomlDocument> document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    Lineage lineage;
    lineage.workload = root.string("workload");
    lineage.platform = root.string("platform");
    lineage.name = root.string("name", "");
    if (root.has("name") && !isSlug(lineage.name))
        root.fail("name", "'" + lineage.name
                              + "' is no name; expected 1 to 64 of a-z, 0-9, '_' and '-', not '-' first.");
    lineage.surface = root.choice("surface", kernel::surfaceWords());
    lineage.title = root.string("title");
    lineage.origin = root.string("origin", "");
    lineage.termination = root.choice("termination", terminationWords, std::string("unknown"));
    lineage.reason = root.string("reason", "");
    lineage.run = root.string("run", "");

    std::set<std::string> ids;
    root.require("state");
    for (const TomlTable &table : root.tables("state"))
        lineage.states.push_back(readState(table, ids));
    for (const TomlTable &table : root.tables("transition"))
        lineage.transitions.push_back(readTransition(table, lineage.states, lineage.transitions.size()));
    for (const TomlTable &table : root.tables("attempt"))
        lineage.attempts.push_back(readAttempt(table, lineage.states, ids));
    if (lineage.states.size() > lineage.transitions.size() + 1)
        root.fail(TextPosition{}, "there are " + std::to_string(lineage.states.size()) + " states and "
                                      + std::to_string(lineage.transitions.size())
                                      + " transitions; expected one transition between each two neighbours.");
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return lineage;
}

std::string writeLineage(const Lineage &lineage)
{
    files::TomlWriter out;
    out.string("workload", lineage.workload);
    out.string("platform", lineage.platform);
    out.optionalString("name", lineage.name);
    out.string("surface", kernel::toString(lineage.surface));
    out.string("title", lineage.title);
    out.optionalString("origin", lineage.origin);
    out.optionalString("termination", lineage.termination);
    out.optionalString("reason", lineage.reason);
    out.optionalString("run", lineage.run);
    writeStates(out, lineage);
    for (const Transition &transition : lineage.transitions) {
        out.beginArrayTable("transition");
        out.string("from", transition.from);
        out.string("to", transition.to);
        out.string("category", transition.category);
        out.string("locus", transition.locus);
        out.string("summary", transition.summary);
        out.optionalString("card", transition.card);
        out.optionalString("rederived", transition.rederived);
        out.optionalString("rederived_trial", transition.rederivedTrial);
        out.optionalString("rederived_match", transition.rederivedMatch);
    }
    for (const Attempt &attempt : lineage.attempts) {
        out.beginArrayTable("attempt");
        out.string("id", attempt.id);
        out.string("parent", attempt.parent);
        out.string("file", attempt.file);
        out.string("title", attempt.title);
        out.optionalString("category", attempt.category);
        out.optionalString("locus", attempt.locus);
        out.string("reason", attempt.reason);
        out.optionalString("trial", attempt.trial);
    }
    return out.text();
}

} // namespace klineage::lineage
