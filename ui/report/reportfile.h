// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

#include <QString>

#include <string>

namespace klineage::ui {

/// Writes the report of a lineage, a run or an experiment (report::findSubject) as FILE.html, .pdf or .md, in light colours. Empty on
/// success, else a sentence; an existing file is replaced only when the new one is complete. GUI thread.
[[nodiscard]] QString writeReportFile(const Workspace &workspace, const std::string &name,
                                      const QString &fileName);

} // namespace klineage::ui
