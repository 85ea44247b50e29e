// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/materialize/arm.h"

#include "core/base/suggest.h"
#include "core/files/sha256.h"
#include "core/talk/cardtext.h"

#include <algorithm>

namespace klineage::run {

const std::vector<std::string> &armNames()
{
    static const std::vector<std::string> names = {"full",  "none",      "shuffled",
                                                   "index", "no-blocks", "no-risks"};
    return names; // in the order of Arm
}

Result<Arm> armOf(const std::map<std::string, std::string> &options)
{
    const auto said = options.find("arm");
    if (said == options.end())
        return Arm::Full;
    const auto name = std::find(armNames().begin(), armNames().end(), said->second);
    if (name == armNames().end())
        return fail(ErrorCode::InvalidInput, "There is no arm '" + said->second + "'; expected "
                                                 + quotedList(armNames())
                                                 + didYouMean(said->second, armNames()) + '.');
    return static_cast<Arm>(name - armNames().begin());
}

skills::CardRecord shownIn(Arm arm, skills::CardRecord record)
{
    if (arm == Arm::NoBlocks)
        record.buildingBlock.clear();
    if (arm == Arm::NoRisks)
        record.card.risks.clear();
    return record;
}

std::vector<std::string> placeboOf(const std::vector<skills::CardRecord> &library,
                                   const std::set<std::string> &taken, const std::string &language,
                                   std::size_t bytes, std::uint64_t seed)
{
    std::set<std::string> categories;
    for (const skills::CardRecord &record : library) {
        if (taken.count(record.card.name) > 0)
            categories.insert(record.card.category);
    }
    struct Other {
        std::string draw;
        std::string name;
        std::size_t bytes = 0;
    };
    std::vector<Other> others;
    for (const skills::CardRecord &record : library) {
        const std::vector<std::string> &languages = record.card.scope.languages;
        const bool speaks =
            languages.empty() || std::find(languages.begin(), languages.end(), language) != languages.end();
        if (speaks && !record.card.retired && taken.count(record.card.name) == 0
            && categories.count(record.card.category) == 0)
            others.push_back({files::sha256Hex(std::to_string(seed) + ' ' + record.card.name),
                              record.card.name, policy::cardText(record).size()});
    }
    std::sort(others.begin(), others.end(), [](const Other &a, const Other &b) { return a.draw < b.draw; });
    std::vector<std::string> names;
    std::size_t sum = 0;
    for (const Other &other : others) {
        if (sum >= bytes)
            break;
        const bool nearer = sum + other.bytes <= bytes || sum + other.bytes - bytes < bytes - sum;
        if (!nearer)
            continue;
        names.push_back(other.name);
        sum += other.bytes;
    }
    return names;
}

} // namespace klineage::run
