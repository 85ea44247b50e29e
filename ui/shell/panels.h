// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <vector>

class QWidget;

namespace klineage::ui {

class CardReviewer;
class GateController;
class ProblemsModel;
class RunController;
class RunStore;
class Selection;
class WorkspaceModel;

/// What panels are made from. Nothing is owned; everything outlives the panels.
struct PanelContext {
    WorkspaceModel *workspace = nullptr;
    Selection *selection = nullptr;
    GateController *gate = nullptr;
    CardReviewer *reviewer = nullptr;
    ProblemsModel *problems = nullptr;
    RunStore *runs = nullptr;
    RunController *runner = nullptr;
};

enum class PanelPlace { Dock, Centre };

/// A panel of the window. Where a dock stands is said by the layouts (docks/layouts.cpp).
struct PanelSpec {
    const char *id;
    QString title;
    const char *icon;
    PanelPlace place;
    QWidget *(*make)(const PanelContext &);
};

/// All panels, one row each.
[[nodiscard]] const std::vector<PanelSpec> &panelTable();

} // namespace klineage::ui
