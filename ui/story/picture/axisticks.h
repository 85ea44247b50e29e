// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/picture/picture.h"

namespace klineage::ui {

struct AxisTick {
    double at = 0; ///< in units of the picture
    QString text;
    QString below;
};

/// Ticks of a part of an axis that is so many pixels long: latencies and ratios at 1, 2, 5 of a decade, or at decades where there are many;
/// never so many that their texts, `textPixels` long, touch. Pure.
[[nodiscard]] std::vector<AxisTick> axisTicks(const PictureAxis &axis, double low, double high, double pixels,
                                              double textPixels);

} // namespace klineage::ui
