// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/plots/runtrace.h"

class QColor;
class QCPScatterStyle;

namespace klineage::ui {

/// ● valid, ◇ audited, × wrapper, △ failed, ○ anything else. Valid and audited ones have the colour of their series.
[[nodiscard]] QCPScatterStyle runGlyph(RunTracePoint::Kind kind, const QColor &series);

} // namespace klineage::ui
