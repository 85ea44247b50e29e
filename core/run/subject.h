// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/activerun.h"

#include <optional>
#include <string>

namespace klineage::run {

/// A lineage by name, "softmax/pocl", or a state of it, "softmax/pocl/K04".
struct StateName {
    std::string workload;
    std::string folder; ///< of the lineage within its workload
    std::string state;  ///< empty: the lineage

    [[nodiscard]] std::string lineage() const { return workload + '/' + folder; }
};
/// Nothing when the text has another shape. Whether there is such a lineage is another question.
[[nodiscard]] std::optional<StateName> stateNameOf(const std::string &text);

/// A kernel that a run works on, with everything that its prompts say of it. Kept in the run, so that what changes in the workspace
/// later changes nothing of a run that is gone on with or replayed.
struct Subject {
    std::string label;    ///< "softmax/pocl/K04", or the file as it was named
    std::string lineage;  ///< key; of a file, that whose folder it lies in; empty when it belongs to none
    std::string title;    ///< of the state; empty for a file
    std::string origin;   ///< of the lineage: where the kernel comes from, and its licence
    std::string text;     ///< the candidate file
    std::string workload; ///< text of workload.toml
};

/// Finds a state ("softmax/pocl/K04"), a lineage's last one ("softmax/pocl") or a candidate file (absolute, or relative to the
/// workspace), which must be of the run's workload and surface, and keeps it in the run as subject.toml, subject.<ext> and
/// workload.toml; later calls answer with those.
[[nodiscard]] Result<Subject> keepSubject(const ActiveRun &run, const std::string &name);

} // namespace klineage::run
