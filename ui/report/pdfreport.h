// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/report/figures.h"

namespace klineage::ui {

/// Pages of A4 across: text as text, figures as vectors, at the foot of each page the title and its number. GUI thread.
[[nodiscard]] QByteArray asPdf(const report::Document &document, const ReportFigures &figures);

} // namespace klineage::ui
