// SPDX-License-Identifier: GPL-3.0-or-later
// Internal to the room: a report of each kind.
#pragma once

#include "core/report/report.h"

namespace klineage::report {

[[nodiscard]] Document lineageReport(const Workspace &workspace, const lineage::Lineage &lineage);
[[nodiscard]] Document runReport(const run::RunRecord &run);
[[nodiscard]] Document experimentReport(const run::Experiment &experiment);

} // namespace klineage::report
