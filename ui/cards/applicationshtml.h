// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/applications.h"

#include <QString>

namespace klineage::ui {

/// What came of a card wherever it was tried, a line a platform; below them each candidate, its trial as a link "cite:trial:<id>". null: it is
/// being counted. Pure.
[[nodiscard]] QString applicationsHtml(const std::string &card, const run::ApplicationRecord *record);

} // namespace klineage::ui
