// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

#include <QString>

#include <optional>
#include <vector>

namespace klineage::ui {

/// What a citation names in the workspace, and what was measured there.
struct RecordedEvidence {
    bool exists = false;
    QString what;    ///< "K02 → K03 of gemm/sm90", "a trial of gemm/sm90"
    QString verdict; ///< "correct", "wrong"; empty without a trial
    bool isCorrect = false;
    std::optional<gate::Interval> speedup; ///< paired, against the parent
    QString reference;                     ///< "0.882× cublas (0.882–0.883)"; empty where none was timed
    QString latency;                       ///< "196 µs"
    QString device;
    QString note; ///< why an attempt was rejected
};

[[nodiscard]] RecordedEvidence recordedEvidence(const Workspace &workspace, const skills::Citation &citation);

/// A gain that a text names as a factor: "1.24×", "1.24× (1.23–1.25)", "3.4–4.4×".
struct ClaimedGain {
    double low = 0;
    double high = 0;
    QString text;
};
/// In the order of the text. Products such as "8 × 8" are no gains.
[[nodiscard]] std::vector<ClaimedGain> claimedGains(const QString &text);

/// Whether a recorded ratio bears a claim out: their ranges meet once each is widened by what two digits are rounded to.
[[nodiscard]] bool bearsOut(const gate::Interval &recorded, const ClaimedGain &claimed);

} // namespace klineage::ui
