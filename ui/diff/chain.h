// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/step.h"

#include <QString>

namespace klineage::ui {

/// The states before and after a row on the chain; an attempt or branch stands behind the state it was tried from. Empty at the ends
/// and for unknown rows.
[[nodiscard]] QString previousState(const lineage::Lineage &lineage, const QString &rowId);
[[nodiscard]] QString nextState(const lineage::Lineage &lineage, const QString &rowId);

/// A row's id as headings show it: of a branch the first digits of its trial.
[[nodiscard]] QString rowLabel(const lineage::RowRef &row);

} // namespace klineage::ui
