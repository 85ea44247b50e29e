// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

namespace klineage::skills {

/// The risk that a reference means: its id, or its place among the card's risks from 1. NotFound names those that there are.
[[nodiscard]] Result<std::size_t> findRisk(const Card &card, std::string_view reference);

/// Adds what a probe showed of a risk; a risk without an id gets one of its first words ("results-differ-when-k", at most 40 letters),
/// which no other has. probe.risk is filled in.
void addProbe(Card &card, std::size_t risk, Probe probe);

} // namespace klineage::skills
