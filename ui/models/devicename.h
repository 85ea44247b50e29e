// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace klineage::ui {

/// A device's name beside another one's, where there is room for little: from the word on that tells them apart, after "…". Whole where they have
/// little in common at their beginning, or the other one has all of it.
[[nodiscard]] QString distinctName(const QString &name, const QString &other);

} // namespace klineage::ui
