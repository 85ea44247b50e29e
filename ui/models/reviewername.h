// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace klineage::ui {

/// The name beside verdicts and comments: the one that was set, else the login's full name, else the login; empty when nobody knows one.
[[nodiscard]] QString reviewerName();
[[nodiscard]] bool isReviewerNameSet(); ///< by a person
void setReviewerName(const QString &name);

} // namespace klineage::ui
