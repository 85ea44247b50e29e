// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace klineage::ui {

/// A program of this project, "klineage-cli": beside the one that runs (tests stand a folder below), else on PATH; empty: nowhere.
[[nodiscard]] QString ownProgram(const QString &name);

} // namespace klineage::ui
