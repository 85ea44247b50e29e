// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/shell/commands/quickopenmodel.h"

namespace klineage::ui {

class ActionRegistry;
class Selection;
class WorkspaceModel;

/// Everything in the workspace that can be gone to by name: lineages, their states and attempts, cards. The selected lineage first.
/// The entries keep pointers to both and are meant for one showing.
[[nodiscard]] std::vector<QuickEntry> goToEntries(WorkspaceModel *workspace, Selection *selection);

/// Every enabled command with its key.
[[nodiscard]] std::vector<QuickEntry> commandEntries(const ActionRegistry &registry);

} // namespace klineage::ui
