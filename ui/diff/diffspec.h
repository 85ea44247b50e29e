// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/chain.h"
#include "ui/diff/render/document.h"

#include <filesystem>
#include <optional>

namespace klineage::ui {

/// What of a row is compared.
enum class DiffTab { Source, Plan, Log };

/// One side, named so that a worker thread can read it without the workspace.
struct SideSpec {
    DiffTab tab = DiffTab::Source;
    QString label;              ///< "K03", for messages
    std::filesystem::path file; ///< Source, Plan
    std::string log;            ///< Log
    bool hasTrial = false;      ///< Log: false says that nothing was recorded

    /// Changes when the file does.
    [[nodiscard]] QString key() const;
};

struct DiffSpec {
    std::optional<SideSpec> left; ///< none: nothing to compare with
    SideSpec right;
    diff::Options options;

    [[nodiscard]] QString key() const;
};

[[nodiscard]] SideSpec sideSpec(const lineage::RowRef &row, DiffTab tab);
/// The row with the baseline that is pinned, or with its parent. Nothing when the lineage has no such row.
[[nodiscard]] std::optional<DiffSpec> diffSpec(const lineage::Lineage &lineage, const QString &rowId,
                                               const QString &baseline, DiffTab tab,
                                               const diff::Options &options);
/// Reads a side: the file, the canonical text of its launch plan, or the log; a side that cannot be read says why. Any thread.
[[nodiscard]] SideTextPtr readSide(const SideSpec &spec, const std::stop_token &stop = {});

} // namespace klineage::ui
