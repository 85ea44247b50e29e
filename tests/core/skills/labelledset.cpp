// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/skills/labelledset.h"

#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/files/atomicfile.h"
#include "core/files/tomlreader.h"
#include "core/skills/retrieval/similarity.h"
#include "core/skills/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace klineage::tests {

using namespace klineage::skills;
using files::TomlDocument;
using files::TomlTable;

namespace {

std::vector<Feature> features(const TomlTable &table, const char *key)
{
    std::vector<Feature> out;
    for (const std::string &contract : table.strings(key)) {
        const std::size_t at = contract.find(" at ");
        if (at == std::string::npos)
            throw std::runtime_error(contract + " is no contract");
        out.push_back({contract.substr(at + 4), contract.substr(0, at)});
    }
    return out;
}

TomlDocument readToml(const std::filesystem::path &path)
{
    const Result<std::string> text = files::readFile(path, std::size_t{1} << 20);
    if (!text)
        throw std::runtime_error(text.error().message);
    Result<TomlDocument> document = TomlDocument::parse(*text, path.filename().string());
    if (!document)
        throw std::runtime_error(document.error().message);
    return std::move(*document);
}

void finish(const TomlDocument &document)
{
    if (const Status ok = document.finish(); !ok)
        throw std::runtime_error(ok.error().message);
}

CardRecord readCard(const TomlTable &table)
{
    CardRecord record;
    Card &card = record.card;
    card.name = table.string("name");
    card.category = table.string("category");
    card.capability.features = table.strings("features");
    card.capability.dtypes = table.strings("dtypes");
    card.capability.families = table.strings("families");
    card.scope.priorActions = table.strings("prior");
    card.requirements = features(table, "requires");
    card.provides = features(table, "provides");
    card.conflicts = features(table, "conflicts");
    card.retired = table.boolean("retired", false);
    for (const std::string &target : table.strings("verified"))
        record.verifications.push_back(
            {"2026-01-01T00:00:00Z", target, "0123456789abcdef", 1, "correct", true, true});
    return record;
}

LineagePath readPath(const TomlTable &table)
{
    LineagePath path;
    path.lineage = table.string("lineage");
    path.workload = path.lineage.substr(0, path.lineage.find('/'));
    path.platform = path.lineage.substr(path.lineage.find('/') + 1);
    for (const std::string &step : table.strings("steps")) {
        const std::size_t colon = step.find(": ");
        path.categories.push_back(step.substr(0, colon));
        path.cards.push_back(step.substr(colon + 2));
        path.states.push_back("K0" + std::to_string(path.states.size() + 1));
        if (path.states.size() > 9)
            path.states.back().erase(1, 1); // "K10"
    }
    return path;
}

/// Tags name the types of the inputs before those of the outputs, as tagsOf() does; the inputs of each of these workloads are of one type.
std::vector<std::string> inputTypes(const std::vector<std::string> &tags)
{
    static const std::set<std::string, std::less<>> types{"f32", "bf16", "f16", "f8e4m3", "i32"};
    const auto first =
        std::find_if(tags.begin(), tags.end(), [](const std::string &tag) { return types.contains(tag); });
    return first == tags.end() ? std::vector<std::string>() : std::vector{*first};
}

LabelledTarget readTarget(const TomlTable &table, const std::map<std::string, const Card *> &cards,
                          const std::vector<WorkloadTags> &workloads)
{
    LabelledTarget out;
    out.target.workload = table.string("workload");
    for (const WorkloadTags &workload : workloads) {
        if (workload.workload == out.target.workload) {
            out.target.families = Vocabulary::instance().familiesOf(workload.tags);
            out.target.dtypes = inputTypes(workload.tags);
            out.target.workloadTags = workload.tags;
        }
    }
    out.target.platform = table.string("platform");
    out.target.language = std::string(languageOfPlatform(out.target.platform));
    const std::vector<std::string> applied = table.strings("applied");
    for (const std::string &name : applied) {
        const Card &card = *cards.at(name);
        out.target.priorActions.push_back(card.category);
        out.target.features.insert(out.target.features.end(), card.provides.begin(), card.provides.end());
    }
    for (const std::string &name : table.strings("relevant"))
        out.relevant.insert(cards.at(name)->name);
    out.title = out.target.workload + '/' + out.target.platform
                + (applied.empty() ? " before any step" : " after " + joined(applied, ", "));
    return out;
}

} // namespace

LabelledSet readLabelledSet(const std::filesystem::path &folder, const std::string &file)
{
    const TomlDocument library = readToml(folder / "library.toml");
    const TomlDocument labels = readToml(folder / file);
    LabelledSet set;
    for (const TomlTable &table : library.root().tables("card"))
        set.library.push_back(readCard(table));
    for (const TomlTable &table : library.root().tables("path"))
        set.paths.push_back(readPath(table));
    for (const TomlTable &table : library.root().tables("workload"))
        set.workloads.push_back({table.string("name"), table.strings("tags")});
    finish(library);
    std::map<std::string, const Card *> cards;
    for (const CardRecord &record : set.library)
        cards[record.card.name] = &record.card;
    for (const LineagePath &path : set.paths) {
        for (const std::string &name : path.cards)
            static_cast<void>(cards.at(name));
    }
    for (const TomlTable &table : labels.root().tables("target"))
        set.targets.push_back(readTarget(table, cards, set.workloads));
    finish(labels);
    return set;
}

namespace {

/// What an earlier card has more of than a later one.
std::string differences(const Score &early, const Score &late)
{
    std::vector<std::pair<double, const char *>> parts{
        {early.workload - late.workload, "workload"},
        {early.language - late.language, "language"},
        {early.platform - late.platform, "platform"},
        {early.priorActions - late.priorActions, "prior actions"},
        {early.family - late.family, "family"},
        {early.continuation - late.continuation, "continuation"},
        {early.path - late.path, "path"},
        {early.alternative - late.alternative, "alternative"}};
    std::sort(parts.begin(), parts.end(),
              [](const auto &a, const auto &b) { return std::abs(a.first) > std::abs(b.first); });
    std::vector<std::string> texts;
    for (const auto &[difference, name] : parts) {
        if (std::abs(difference) >= 0.005)
            texts.push_back(std::string(name) + (difference > 0 ? " +" : " -")
                            + fixedText(std::abs(difference), 2));
    }
    return texts.empty() ? "equal; by name" : joined(texts, ", ");
}

void addMisranked(std::vector<Misranked> &out, const LabelledTarget &labelled, const Retrieval &found)
{
    const std::size_t first = labelled.relevant.size();
    const auto isRelevant = [&](const Retrieved &one) { return labelled.relevant.contains(one.card); };
    const auto early = std::find_if_not(found.taken.begin(), found.taken.end(), isRelevant);
    const Retrieved nothing; // where all that was taken is relevant
    const Retrieved &before = early == found.taken.end() ? nothing : *early;
    for (const std::string &name : labelled.relevant) {
        const auto late = std::find_if(found.taken.begin(), found.taken.end(),
                                       [&](const Retrieved &one) { return one.card == name; });
        if (late == found.taken.end())
            out.push_back({labelled.title, name, before.card, 0, before.score, "was not taken"});
        else if (late - found.taken.begin() >= static_cast<std::ptrdiff_t>(first))
            out.push_back({labelled.title, name, before.card, late->score, before.score,
                           differences(before.parts, late->parts)});
    }
}

} // namespace

Figures measure(const LabelledSet &set, const RetrievalIndex &index)
{
    Figures figures;
    const auto bare = std::count_if(set.targets.begin(), set.targets.end(),
                                    [](const LabelledTarget &target) { return target.relevant.empty(); });
    const double share = 1.0 / static_cast<double>(static_cast<std::ptrdiff_t>(set.targets.size()) - bare);
    for (const LabelledTarget &labelled : set.targets) {
        const Retrieval found = index.find(labelled.target);
        if (labelled.relevant.empty()) {
            ++figures.bare;
            figures.takenOfBare += static_cast<double>(found.taken.size()) / static_cast<double>(bare);
            continue;
        }
        std::size_t inFirst8 = 0;
        std::size_t inFirstR = 0;
        std::size_t hits = 0;
        std::set<std::string> missed = labelled.relevant;
        for (std::size_t i = 0; i < found.taken.size(); ++i) {
            if (missed.erase(found.taken[i].card) == 0)
                continue;
            ++hits;
            inFirst8 += i < 8 ? 1 : 0;
            inFirstR += i < labelled.relevant.size() ? 1 : 0;
        }
        const auto relevant = static_cast<double>(labelled.relevant.size());
        figures.recallAt8 += share * static_cast<double>(inFirst8) / relevant;
        figures.precisionAtR += share * static_cast<double>(inFirstR) / relevant;
        figures.recall += share * static_cast<double>(hits) / relevant;
        if (!found.taken.empty())
            figures.precision += share * static_cast<double>(hits) / static_cast<double>(found.taken.size());
        figures.taken += share * static_cast<double>(found.taken.size());
        addMisranked(figures.misranked, labelled, found);
        for (const std::string &name : missed)
            figures.misses.push_back(labelled.title + ": " + name);
    }
    return figures;
}

} // namespace klineage::tests
