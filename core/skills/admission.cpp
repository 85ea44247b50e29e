// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/admission.h"

#include "core/base/listtext.h"
#include "core/files/sha256.h"

#include <algorithm>
#include <set>

namespace klineage::skills {

namespace {

bool sawEffect(const Verification &run)
{
    return run.status == "correct" && run.expectedEffectObserved;
}

/// What was found out since is no other text.
std::string hashOf(const CardRecord &record, Card card)
{
    card.revision = 1;
    card.retired = false;
    card.probes.clear();
    for (Claim &risk : card.risks)
        risk.id.clear();
    std::string all;
    const std::string text = writeCard(card);
    for (const std::string *part : {&text, &record.carrier, &record.buildingBlock})
        all += std::to_string(part->size()) + '\n' + *part;
    return files::sha256Hex(all);
}

Admission judged(const CardRecord &record)
{
    Admission out;
    const std::string hash = record.verifications.empty() ? std::string() : contentHash(record);
    std::set<std::string> places;
    std::size_t stale = 0;
    for (const Verification &run : record.verifications) {
        if (counts(run, record, hash)) {
            if (places.insert(lineageOfTarget(run.target)).second)
                out.targets.push_back(run.target);
        } else if (run.heldOut && sawEffect(run)) {
            ++stale;
        }
    }
    if (places.size() >= targetsToAdmit) {
        out.life = Life::Admitted;
        out.reason =
            "Admitted: the expected effect was observed on the held-out targets " + listed(out.targets) + '.';
        return out;
    }
    out.reason =
        out.targets.empty()
            ? std::string("Hypothesis: no held-out roundtrip of this text has succeeded; two are needed.")
            : "Hypothesis: one held-out target, " + out.targets.front() + ", of the two that are needed.";
    if (stale > 0)
        out.reason += ' ' + std::to_string(stale)
                      + (stale == 1 ? " earlier success is of another text of the card and does"
                                    : " earlier successes are of other texts of the card and do")
                      + " not count for this one.";
    return out;
}

} // namespace

std::string lineageOfTarget(std::string_view target)
{
    return std::string(target.substr(0, target.rfind('/')));
}

bool showed(const Verification &run, const CardRecord &record, const std::string &hash)
{
    if (!sawEffect(run) || record.card.format < 2)
        return sawEffect(run);
    // Lines of earlier versions are of the text with its evidence.
    return run.cardHash == hash || run.cardHash == hashOf(record, record.card);
}

bool counts(const Verification &run, const CardRecord &record, const std::string &hash)
{
    return run.heldOut && showed(run, record, hash);
}

Admission admissionOf(const CardRecord &record)
{
    if (record.card.retired)
        return {Life::Retired, {}, "Retired: kept for its evidence, not to be applied."};
    if (record.card.format >= 2)
        return judged(record);
    const auto success = std::find_if(record.verifications.begin(), record.verifications.end(),
                                      [&](const Verification &run) { return counts(run, record, {}); });
    if (success == record.verifications.end())
        return {Life::Hypothesis, {}, "Hypothesis: no held-out roundtrip has succeeded yet."};
    return {Life::Admitted,
            {success->target},
            "Admitted: a held-out roundtrip succeeded with the expected effect."};
}

std::string contentHash(const CardRecord &record)
{
    Card card = record.card;
    card.evidence.clear();
    card.intent.evidence.clear();
    card.anchor.evidence.clear();
    for (auto *claims : {&card.preconditions, &card.triggers, &card.effects, &card.risks}) {
        for (Claim &claim : *claims)
            claim.evidence.clear();
    }
    for (Parameter &parameter : card.parameters)
        parameter.tried.clear();
    return hashOf(record, std::move(card));
}

} // namespace klineage::skills
