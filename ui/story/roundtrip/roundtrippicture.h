// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/run/roundtrip/roundtriprecord.h"
#include "ui/story/picture/picture.h"

namespace klineage::ui {

/// The key of the picture's items begins with it; the lineage's key follows.
inline constexpr const char *roundtripKey = "roundtrip:";

/// Roundtrips of a whole lineage (the counterpart of the paper's Table 3): a lane for each arm, in it a row for each trial at its speed as a
/// share of K*'s, with the interval; a try that was followed by another one is joined to it; without a speed it stands left of the axis. At
/// the right how many recovered. Pure.
[[nodiscard]] Picture roundtripPicture(const lineage::Lineage &lineage, const run::RoundtripRecord &record);

} // namespace klineage::ui
