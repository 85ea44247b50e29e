// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

#include <QString>

#include <optional>
#include <string_view>
#include <vector>

namespace klineage::ui {

/// Something wrong with a place in a candidate.
struct Diagnostic {
    enum class Severity { Error, Warning };
    Severity severity = Severity::Error;
    int line = 0;   ///< 1-based; 0: the whole file
    int column = 0; ///< 1-based; 0: the whole line
    QString message;

    friend bool operator==(const Diagnostic &, const Diagnostic &) = default;
};

/// What live validation says about a candidate.
struct PlanCheck {
    std::vector<Diagnostic> diagnostics; ///< empty: it parses and its plan resolves
    QString summary;                     ///< of a good plan: "1 launch: gemm 32 × 32 blocks of 256"
};

/// Bytes of shared memory that a block may have on a platform ("sm90"); 0: not known.
[[nodiscard]] std::int64_t sharedLimitOf(std::string_view platform);

/// Parses a candidate and resolves its launch plan for the workload's timed case. facts: the device facts that expressions may
/// use; those that are missing get the smallest value that makes sense, since only the plan's form is judged, but a limit that is not
/// known is none. Pure.
[[nodiscard]] PlanCheck checkCandidate(std::string_view text, const std::string &fileName,
                                       const workload::Workload *workload,
                                       const kernel::Bindings &facts = {});

/// "file:12:5: what" taken apart; without a position line and column are 0.
[[nodiscard]] Diagnostic diagnosticFromMessage(const QString &message);

/// Errors and warnings of a compiler's log that name a line: NVRTC's "name(12): error: …" and Clang's "name:12:5: error: …".
[[nodiscard]] std::vector<Diagnostic> diagnosticsFromLog(const QString &log);

} // namespace klineage::ui
