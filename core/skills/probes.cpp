// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/probes.h"

#include <algorithm>
#include <charconv>

namespace klineage::skills {

namespace {

constexpr std::size_t longestId = 40;

bool isLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// Whole words of a text, as many as fit.
std::string slugOf(std::string_view text)
{
    std::string slug;
    std::string word;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i == text.size() ? ' ' : text[i];
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (isLetter(lower)) {
            word += lower;
            continue;
        }
        if (word.empty())
            continue;
        if (slug.size() + 1 + word.size() > longestId)
            break;
        slug += (slug.empty() ? "" : "-") + word;
        word.clear();
    }
    return slug.empty() ? "risk" : slug;
}

bool isTaken(const Card &card, const std::string &id)
{
    return std::any_of(card.risks.begin(), card.risks.end(),
                       [&](const Claim &risk) { return risk.id == id; });
}

} // namespace

Result<std::size_t> findRisk(const Card &card, std::string_view reference)
{
    for (std::size_t i = 0; i < card.risks.size(); ++i) {
        if (!reference.empty() && card.risks[i].id == reference)
            return i;
    }
    std::size_t place = 0;
    const char *end = reference.data() + reference.size();
    const auto [stopped, problem] = std::from_chars(reference.data(), end, place);
    if (problem == std::errc() && stopped == end && place >= 1 && place <= card.risks.size())
        return place - 1;
    std::string known;
    for (std::size_t i = 0; i < card.risks.size(); ++i)
        known += "\n  " + std::to_string(i + 1)
                 + (card.risks[i].id.empty() ? "" : " (" + card.risks[i].id + ')') + ": "
                 + card.risks[i].text;
    return fail(ErrorCode::NotFound, known.empty() ? "The card '" + card.name + "' has no risks."
                                                   : "The card '" + card.name + "' has no risk '"
                                                         + std::string(reference) + "'; it has" + known);
}

Finding findingOf(const gate::Trial &trial, const std::vector<std::string> &expected)
{
    const auto isAbout = [&](std::string_view word) {
        return std::find(expected.begin(), expected.end(), word) != expected.end();
    };
    Finding finding;
    const bool isCorrect = trial.verdict.status == gate::VerdictStatus::Correct;
    const gate::Comparison *comparison = isCorrect ? trial.comparison("parent") : nullptr;
    finding.outcome = comparison ? gate::toString(comparison->change) : gate::toString(trial.verdict.status);
    if (!trial.admits())
        finding.problem = "The trial is no evidence: it is advisory, or looks at another trial again.";
    if (!finding.problem.empty() || isAbout(finding.outcome)
        || (comparison && comparison->change == gate::Change::Loss && isAbout("no_gain")))
        return finding;
    if (!isCorrect)
        finding.problem = "The candidate fails in another way than the risk says (" + finding.outcome
                          + "): " + trial.verdict.message;
    else if ((isAbout("loss") || isAbout("no_gain")) && !comparison)
        finding.problem = "Whether it costs anything takes a --parent to compare with.";
    else if ((isAbout("loss") || isAbout("no_gain")) && comparison->change != gate::Change::Gain)
        finding.problem = "Whether it costs anything is not decided.";
    finding.refutes = finding.problem.empty();
    return finding;
}

void addProbe(Card &card, std::size_t risk, Probe probe)
{
    std::string &id = card.risks.at(risk).id;
    if (id.empty()) {
        const std::string slug = slugOf(card.risks[risk].text);
        std::string free = slug;
        for (int i = 2; isTaken(card, free); ++i)
            free = slug + '-' + std::to_string(i);
        id = free;
    }
    probe.risk = id;
    card.format = std::max(card.format, 2);
    card.probes.push_back(std::move(probe));
}

} // namespace klineage::skills
