// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"
#include "core/trial/trial.h"

#include <string>
#include <vector>

namespace klineage::skills {

/// The risk that a reference means: its id, or its place among the card's risks from 1. NotFound names those that there are.
[[nodiscard]] Result<std::size_t> findRisk(const Card &card, std::string_view reference);

/// What a trial of a candidate that violates a precondition says of the risk.
struct Finding {
    std::string outcome;  ///< the status, or for a correct candidate what it changed against its parent
    bool refutes = false; ///< the candidate does all the same what it should
    std::string problem;  ///< why it says nothing; empty: it says something
};

/// `expected`: what the risk can come true as, words for a status or a change. A loss is no gain too, but no gain may be a loss that the
/// measurement could not tell: where a loss was expected, it decides nothing.
[[nodiscard]] Finding findingOf(const gate::Trial &trial, const std::vector<std::string> &expected);

/// Adds what a probe showed of a risk; a risk without an id gets one of its first words ("results-differ-when-k", at most 40 letters),
/// which no other has. probe.risk is filled in.
void addProbe(Card &card, std::size_t risk, Probe probe);

} // namespace klineage::skills
