// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/traceset/datasetdefinition.h"
#include "core/trial/trial.h"

namespace klineage::interop {

/// The format's status of a verdict; nullptr: it has none for it ('suspect', 'unavailable'). Table: core/interop/README.md.
[[nodiscard]] const char *datasetStatus(gate::VerdictStatus status);

/// A trial as a line of traces: its evaluation on the case that decided it, or on the timed one. The error's message is why the format
/// cannot carry it, a phrase that follows "N trials are left out: ".
[[nodiscard]] Result<DatasetLine> datasetTraceOf(const DatasetDefinition &definition,
                                                 const workload::Workload &workload,
                                                 const std::string &solution, const gate::Trial &trial);

/// The case that a verdict's evidence names: "odd", "hidden (K = 360, M = 129)".
[[nodiscard]] std::optional<workload::Case> caseCalled(const workload::Workload &workload,
                                                       const std::string &text);

} // namespace klineage::interop
