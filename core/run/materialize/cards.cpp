// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/materialize/cards.h"

#include "core/files/jsonreader.h"
#include "core/files/sha256.h"
#include "core/run/materialize/arm.h"
#include "core/skills/retrieval/chain.h"
#include "core/skills/retrieval/sources.h"
#include "core/talk/cardtext.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace klineage::run {

using files::JsonReader;
using nlohmann::json;

namespace {

constexpr std::size_t mostListed = 1000;
constexpr std::size_t maxCardText = std::size_t{1} << 20;

std::vector<std::string> readTexts(JsonReader &reader, const char *key)
{
    std::vector<std::string> texts;
    if (const json *list = reader.optionalArray(key, mostListed)) {
        for (const json &item : *list)
            texts.push_back(files::readText(item, reader.pathOf(key)));
    }
    return texts;
}

TakenCard readTaken(const json &value, const files::JsonPath &path)
{
    JsonReader reader(value, path);
    TakenCard taken;
    taken.card.name = reader.text("card", 64);
    taken.revision = static_cast<int>(std::clamp<std::int64_t>(reader.integer("revision"), 0, 1'000'000'000));
    taken.card.intent = reader.text("intent");
    taken.card.text = reader.text("text", maxCardText);
    taken.card.index = reader.optionalText("index"); // runs of earlier versions have none
    taken.reasons = readTexts(reader, "reasons");
    reader.finish();
    return taken;
}

BlockedCard readBlocked(const json &value, const files::JsonPath &path)
{
    JsonReader reader(value, path);
    BlockedCard blocked;
    blocked.card = reader.text("card", 64);
    blocked.rules = readTexts(reader, "rules");
    reader.finish();
    return blocked;
}

CardChoice readChoice(const json &value)
{
    JsonReader reader(value, {});
    CardChoice choice;
    const auto each = [&reader](const char *key, const auto &take) {
        const json *list = reader.optionalArray(key, mostListed);
        for (std::size_t i = 0; list && i < list->size(); ++i)
            take((*list)[i], files::childPath(reader.pathOf(key), std::to_string(i)));
    };
    each("taken", [&](const json &item, const files::JsonPath &path) {
        choice.taken.push_back(readTaken(item, path));
    });
    choice.present = readTexts(reader, "present"); // runs of earlier versions have none
    each("blocked", [&](const json &item, const files::JsonPath &path) {
        choice.blocked.push_back(readBlocked(item, path));
    });
    reader.finish();
    return choice;
}

bool isYes(const Settings &settings, const char *option)
{
    const auto it = settings.options.find(option);
    return it != settings.options.end() && it->second == "yes";
}

/// Whether anything that the card rests on comes from the workload: then it is no help from elsewhere.
bool restsOn(const skills::CardRecord &record, const std::string &workload)
{
    const std::string beginning = workload + '/';
    const auto cites = [&](const skills::Citation &citation) { return citation.starts_with(beginning); };
    const auto claims = [&](const std::vector<skills::Claim> &list) {
        return std::any_of(list.begin(), list.end(), [&](const skills::Claim &claim) {
            return std::any_of(claim.evidence.begin(), claim.evidence.end(), cites);
        });
    };
    const skills::Card &card = record.card;
    return std::any_of(card.evidence.begin(), card.evidence.end(), cites)
           || claims({card.intent, card.anchor}) || claims(card.preconditions) || claims(card.effects)
           || claims(card.risks)
           || std::any_of(record.verifications.begin(), record.verifications.end(),
                          [&](const skills::Verification &run) { return cites(run.target); });
}

/// The trial of a file that was gated before, in any lineage of its workload on the platform.
const gate::Trial *trialOf(const Workspace &workspace, const Settings &settings, const std::string &text)
{
    const std::string sha = files::sha256Hex(text);
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (lineage.workload != settings.workload || lineage.platform != settings.platform)
            continue;
        for (const gate::Trial &trial : lineage.trials) {
            if (trial.candidate == sha)
                return &trial;
        }
    }
    return nullptr;
}

/// The root as a target: a state with what lies behind it, and any file with what its code and its trial show.
skills::Target targetOf(const Workspace &workspace, const Settings &settings, const Subject &root)
{
    skills::Target target;
    const lineage::Lineage *lineage = workspace.findLineage(root.lineage);
    const std::size_t slash = root.label.rfind('/');
    if (lineage && slash != std::string::npos) {
        if (auto found = skills::targetAt(*lineage, root.label.substr(slash + 1), workspace.cards))
            target = std::move(*found);
    }
    target.workload = settings.workload;
    target.language = settings.surface;
    target.platform = settings.platform;
    if (const workload::Workload *workload = workspace.findWorkload(settings.workload))
        skills::describe(target, *workload);
    skills::describeCode(target, root.text);
    skills::describeFeatures(target, root.text, workspace.cards);
    if (const gate::Trial *trial = trialOf(workspace, settings, root.text))
        skills::describeTrial(target, *trial);
    return target;
}

constexpr const char *unshown = "The text of this card is not shown in this run.\n";

TakenCard shownCard(Arm arm, const skills::CardRecord &record)
{
    const skills::CardRecord shown = shownIn(arm, record);
    return {{record.card.name, record.card.intent.text, arm == Arm::Index ? unshown : policy::cardText(shown),
             policy::indexLine(record)},
            record.card.revision,
            {}};
}

TakenCard takenOf(const skills::Link &link, const skills::CardRecord &record, Arm arm)
{
    TakenCard taken = shownCard(arm, record);
    std::string after;
    for (const std::string &name : link.after)
        after += (after.empty() ? "" : ", ") + name;
    if (!after.empty())
        taken.reasons.push_back("once the cards before it are applied: " + after);
    for (const skills::Reason &reason : link.retrieved.reasons)
        taken.reasons.push_back(reason.text);
    return taken;
}

/// As many bytes of other cards in the place of those that were chosen.
void replaceByPlacebo(CardChoice &choice, const std::vector<skills::CardRecord> &library,
                      const Settings &settings)
{
    std::set<std::string> names;
    std::size_t bytes = 0;
    for (const TakenCard &taken : choice.taken) {
        names.insert(taken.card.name);
        bytes += taken.card.text.size();
    }
    const std::vector<std::string> others = placeboOf(library, names, settings.surface, bytes, settings.seed);
    choice.taken.clear();
    choice.blocked.clear(); // they name cards that the choice had
    choice.present.clear();
    for (const std::string &name : others) {
        const auto record = std::find_if(library.begin(), library.end(),
                                         [&](const auto &other) { return other.card.name == name; });
        choice.taken.push_back(shownCard(Arm::Shuffled, *record));
        choice.taken.back().reasons = {"A placebo: drawn from the cards that retrieval did not choose."};
    }
}

} // namespace

// A plan needs all of them in view: also those that fit only later.
CardChoice chooseCards(const Workspace &whole, const Settings &settings, const Subject &root, int most)
{
    const Arm arm = armOf(settings.options).value_or(Arm::Full);
    const bool heldOut = isYes(settings, "held_out");
    const skills::Target target = targetOf(whole, settings, root);
    std::vector<skills::CardRecord> otherCards;
    std::vector<lineage::Lineage> otherLineages;
    if (heldOut) {
        std::copy_if(whole.cards.begin(), whole.cards.end(), std::back_inserter(otherCards),
                     [&](const skills::CardRecord &record) { return !restsOn(record, settings.workload); });
        std::copy_if(whole.lineages.begin(), whole.lineages.end(), std::back_inserter(otherLineages),
                     [&](const lineage::Lineage &lineage) { return lineage.workload != settings.workload; });
    }
    const std::vector<skills::CardRecord> &library = heldOut ? otherCards : whole.cards;
    const std::vector<lineage::Lineage> &lineages = heldOut ? otherLineages : whole.lineages;
    const skills::RetrievalIndex index(library, skills::pathsOf(lineages), skills::tagsOf(whole.workloads));
    skills::RetrievalOptions options;
    options.hypotheses = isYes(settings, "hypotheses");
    const skills::Chain chain =
        skills::retrieveChain(index, library, target, options, static_cast<std::size_t>(most));

    CardChoice choice;
    for (const skills::Link &link : chain.taken) {
        const auto record =
            std::find_if(library.begin(), library.end(), [&](const skills::CardRecord &other) {
                return other.card.name == link.retrieved.card;
            });
        choice.taken.push_back(takenOf(link, *record, arm));
    }
    for (const skills::Blocked &blocked : chain.blocked) {
        choice.blocked.push_back({blocked.card, blocked.rules});
        if (blocked.isThere)
            choice.present.push_back(blocked.card);
    }
    if (arm == Arm::Shuffled)
        replaceByPlacebo(choice, library, settings);
    return choice;
}

std::string writeCardChoice(const CardChoice &choice)
{
    json out{{"taken", json::array()}, {"present", choice.present}, {"blocked", json::array()}};
    for (const TakenCard &taken : choice.taken)
        out["taken"].push_back({{"card", taken.card.name},
                                {"revision", taken.revision},
                                {"intent", taken.card.intent},
                                {"text", taken.card.text},
                                {"index", taken.card.index},
                                {"reasons", taken.reasons}});
    for (const BlockedCard &blocked : choice.blocked)
        out["blocked"].push_back({{"card", blocked.card}, {"rules", blocked.rules}});
    return out.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

Result<CardChoice> parseCardChoice(const std::string &text, const std::string &fileName)
{
    return files::parseJsonLine(text, fileName, [](const json &value) { return readChoice(value); });
}

Result<CardChoice> keepCards(const ActiveRun &run, const Subject &root)
{
    const Result<int> most = run.option("most_cards", mostCardsAbsent, 1, 200);
    if (!most)
        return tl::unexpected(most.error());
    if (const Result<Arm> arm = armOf(run.settings().options); !arm)
        return tl::unexpected(arm.error());
    const Result<std::string> kept = run.context().journal.keep("cards.json", [&]() -> Result<std::string> {
        const Result<Workspace> workspace = openWorkspace(run.context().workspace);
        if (!workspace)
            return tl::unexpected(workspace.error());
        return writeCardChoice(chooseCards(*workspace, run.settings(), root, *most));
    });
    if (!kept)
        return tl::unexpected(kept.error());
    return parseCardChoice(*kept, "cards.json");
}

} // namespace klineage::run
