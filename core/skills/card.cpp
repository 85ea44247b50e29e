// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/card.h"
#include "core/skills/admission.h"

#include <algorithm>

namespace klineage::skills {

const char *toString(Life life)
{
    switch (life) {
    case Life::Hypothesis:
        return "hypothesis";
    case Life::Admitted:
        return "admitted";
    case Life::Retired:
        return "retired";
    }
    return "hypothesis";
}

const char *toString(ReviewVerdict verdict)
{
    switch (verdict) {
    case ReviewVerdict::Approve:
        return "approve";
    case ReviewVerdict::Reject:
        return "reject";
    case ReviewVerdict::NeedsEvidence:
        return "needs_evidence";
    case ReviewVerdict::Edit:
        return "edit";
    case ReviewVerdict::Revert:
        return "revert";
    case ReviewVerdict::Comment:
        return "comment";
    }
    return "needs_evidence";
}

const char *toString(RiskStanding standing)
{
    switch (standing) {
    case RiskStanding::Believed:
        return "believed";
    case RiskStanding::Probed:
        return "probed";
    case RiskStanding::Refuted:
        return "refuted";
    }
    return "believed";
}

RiskStanding standingOf(const Card &card, const Claim &risk)
{
    const auto about = [&](const Probe &probe) { return !risk.id.empty() && probe.risk == risk.id; };
    const auto probe = std::find_if(card.probes.rbegin(), card.probes.rend(), about); // the newest
    if (probe != card.probes.rend())
        return probe->refutes ? RiskStanding::Refuted : RiskStanding::Probed;
    const bool attempted = std::any_of(risk.evidence.begin(), risk.evidence.end(), isAttempt);
    return attempted ? RiskStanding::Probed : RiskStanding::Believed;
}

Life CardRecord::life() const
{
    return admissionOf(*this).life;
}

std::set<std::string> CardRecord::revertedReviews() const
{
    // A Revert can only name an event before it, so from the end each event's fate is known when it is reached.
    std::set<std::string> reverted;
    for (auto event = reviews.rbegin(); event != reviews.rend(); ++event) {
        if (event->verdict == ReviewVerdict::Revert && reverted.count(event->id) == 0)
            reverted.insert(event->reverts);
    }
    return reverted;
}

const Review *CardRecord::standingReview() const
{
    const std::set<std::string> reverted = revertedReviews();
    for (auto event = reviews.rbegin(); event != reviews.rend(); ++event) {
        const bool isJudgement = event->verdict != ReviewVerdict::Edit
                                 && event->verdict != ReviewVerdict::Revert
                                 && event->verdict != ReviewVerdict::Comment;
        if (isJudgement && reverted.count(event->id) == 0)
            return &*event;
    }
    return nullptr;
}

const Review *CardRecord::undoCandidate() const
{
    const std::set<std::string> reverted = revertedReviews();
    for (auto event = reviews.rbegin(); event != reviews.rend(); ++event) {
        if (event->verdict != ReviewVerdict::Revert && reverted.count(event->id) == 0)
            return &*event;
    }
    return nullptr;
}

const Review *CardRecord::redoCandidate() const
{
    if (reviews.empty())
        return nullptr;
    const std::set<std::string> reverted = revertedReviews();
    for (auto event = reviews.rbegin(); event != reviews.rend(); ++event) {
        if (reverted.count(event->id) > 0)
            continue;
        if (event->verdict != ReviewVerdict::Revert)
            return nullptr; // something new was done since: there is nothing to redo
        // A Revert that took a Revert back is a redo already done; the one before it is next.
        const auto target = std::find_if(reviews.begin(), reviews.end(),
                                         [&](const Review &r) { return r.id == event->reverts; });
        // …and one without the text it replaced took back an interrupted edit, whose text is lost.
        const bool isLost = target != reviews.end() && !target->before.empty() && event->before.empty();
        if (target != reviews.end() && target->verdict != ReviewVerdict::Revert && !isLost)
            return &*event;
    }
    return nullptr;
}

std::string licenseOf(const Card &card)
{
    return card.imported ? card.imported->license : "GPL-3.0-or-later";
}

bool isCardName(std::string_view name)
{
    const bool hyphens =
        !name.starts_with('-') && !name.ends_with('-') && name.find("--") == std::string_view::npos;
    return hyphens && !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
           });
}

bool isAttempt(std::string_view citation)
{
    const std::size_t slash = citation.rfind('/');
    return isCitation(citation) && slash != std::string_view::npos && slash + 2 < citation.size()
           && citation[slash + 1] == 'R' && citation[slash + 2] >= '0' && citation[slash + 2] <= '9';
}

bool isCitation(std::string_view citation)
{
    constexpr std::string_view trialPrefix = "trial:";
    if (citation.starts_with(trialPrefix)) {
        const std::string_view id = citation.substr(trialPrefix.size());
        return id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    }
    int parts = 1;
    bool empty = true;
    for (const char c : citation) {
        if (c == '/') {
            if (empty)
                return false;
            ++parts;
            empty = true;
        } else if (static_cast<unsigned char>(c) <= ' ') {
            return false;
        } else {
            empty = false;
        }
    }
    return parts == 3 && !empty;
}

} // namespace klineage::skills
