// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/step.h"

#include <QString>

namespace klineage::ui {

/// What was said of the code of a step, and links: "comment:<id>" to its lines, "reply:<id>", "resolve:<id>", "reopen:<id>". Texts are
/// escaped. Pure.
[[nodiscard]] QString commentsHtml(const lineage::Lineage &lineage, const lineage::Step &step);

} // namespace klineage::ui
