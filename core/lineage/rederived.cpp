// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/rederived.h"

#include "core/files/atomicfile.h"
#include "core/lineage/record.h"
#include "core/lineage/rewrite.h"

#include <algorithm>

namespace klineage::lineage {

Match matchOf(const gate::Trial &trial, double within)
{
    const gate::Comparison *comparison = trial.comparison("parent");
    if (!comparison || comparison->speedup.value <= 0)
        return Match::Unsteady;
    const gate::Interval &speedup = comparison->speedup;
    if ((speedup.high - speedup.low) / 2 > within * speedup.value)
        return Match::Unsteady;
    const double share = 1 / speedup.value;
    if (share > 1 + within)
        return Match::Slower;
    return share < 1 - within ? Match::Faster : Match::Equal;
}

RederivedCount countRederived(const Lineage &lineage)
{
    RederivedCount count;
    count.transitions = lineage.transitions.size();
    for (const Transition &transition : lineage.transitions) {
        if (transition.rederived.empty())
            continue;
        ++count.recorded;
        const gate::Trial *match = lineage.findTrial(transition.rederivedMatch);
        if (match && matchOf(*match, rederivedWithin) == Match::Faster)
            ++count.faster;
    }
    return count;
}

std::string rederivedText(const RederivedCount &count)
{
    std::string text = std::to_string(count.recorded) + " of " + std::to_string(count.transitions)
                       + " transitions were derived again";
    if (count.faster > 0)
        text += ", " + std::to_string(count.faster) + " of them to a faster kernel";
    return text + '.';
}

Status keepRederived(const std::filesystem::path &lineageDirectory, const std::string &to,
                     const std::string &text, const gate::Trial &trial, const gate::Trial &match,
                     const std::vector<gate::Trial> &all)
{
    Result<Lineage> lineage = readLineage(lineageDirectory);
    if (!lineage)
        return tl::unexpected(lineage.error());
    const auto transition = std::find_if(lineage->transitions.begin(), lineage->transitions.end(),
                                         [&](const Transition &t) { return t.to == to; });
    if (transition == lineage->transitions.end())
        return fail(ErrorCode::NotFound,
                    "The lineage " + lineage->key() + " has no transition to " + to + '.');
    transition->rederived = "rederived/" + to + lineage->surface.language().extension;
    transition->rederivedTrial = trial.id;
    transition->rederivedMatch = match.id;
    std::error_code problem;
    std::filesystem::create_directories(lineageDirectory / "rederived", problem);
    if (Status written = files::writeFileAtomic(lineageDirectory / transition->rederived, text); !written)
        return written;
    for (const gate::Trial &made : all) {
        if (const auto recorded = recordTrial(*lineage, made, text); !recorded)
            return tl::unexpected(recorded.error());
    }
    return rewriteLineage(lineageDirectory, *lineage);
}

} // namespace klineage::lineage
