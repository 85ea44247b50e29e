// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::skills {

/// Held-out targets, of different workloads or platforms, that it takes to admit a card of format 2.
inline constexpr std::size_t targetsToAdmit = 2;

/// Where a card stands, and why, in whole sentences.
struct Admission {
    Life life = Life::Hypothesis;
    std::vector<std::string> targets; ///< "sgemm-nt/pocl/K00": of the successes that count
    std::string reason;
};

/// A card of format 1 is admitted by one held-out success. One of format 2 takes targetsToAdmit of them, each of the text as it
/// stands: a line that was logged for another text (contentHash()), or for no text that is known, says nothing of this one.
[[nodiscard]] Admission admissionOf(const CardRecord &record);

/// SHA-256 of what a card says: card.toml without revision and retirement, carrier and building block. What it rests on is left out
/// (citations, tried values, probes), so that evidence that is added later takes no admission away.
[[nodiscard]] std::string contentHash(const CardRecord &record);

/// "sgemm-nt/pocl" of "sgemm-nt/pocl/K00": states of one lineage share most of their code and count once.
[[nodiscard]] std::string lineageOfTarget(std::string_view target);

/// Whether the line is a success of the card as it stands: from format 2 on a line says which text it is of.
[[nodiscard]] bool showed(const Verification &run, const CardRecord &record, const std::string &hash);
/// The same, and held out.
[[nodiscard]] bool counts(const Verification &run, const CardRecord &record, const std::string &hash);

} // namespace klineage::skills
