// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/shell/commands/quickopenmodel.h"

namespace klineage::ui {

class ActionRegistry;
class WorkspaceModel;

/// What choosing an entry does.
struct GoTo {
    std::function<void(const QString &lineage, const QString &row)> row;
    std::function<void(const QString &card)> card;
};

/// Everything in the workspace that can be gone to by name: lineages, their states and attempts, cards. The lineage `first` comes
/// first.
[[nodiscard]] std::vector<QuickEntry> goToEntries(const WorkspaceModel &workspace, const QString &first,
                                                  const GoTo &goTo);

/// The steps of all lineages that were timed beside the state before them, most gain first: where, on which device, and the paired gain
/// with its 95 % interval.
[[nodiscard]] std::vector<QuickEntry> largestStepEntries(const WorkspaceModel &workspace, const GoTo &goTo);

/// Every enabled command with its key.
[[nodiscard]] std::vector<QuickEntry> commandEntries(const ActionRegistry &registry);

} // namespace klineage::ui
