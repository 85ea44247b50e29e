// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/disturbance.h"

#include <QString>

namespace klineage::ui {

/// A sentence for beside the figure.
[[nodiscard]] QString disturbanceInWords(const gate::Disturbance &disturbance);
/// The same in a few words, for a caption: "busy machine (load 5.2 on 2 threads)".
[[nodiscard]] QString disturbanceInBrief(const gate::Disturbance &disturbance);

} // namespace klineage::ui
