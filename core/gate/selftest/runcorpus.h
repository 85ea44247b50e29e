// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/selftest/corpusfile.h"
#include "core/gate/supervisor/supervisor.h"

#include <functional>
#include <optional>
#include <set>

namespace klineage::gate {

/// Few seeds and rounds, no reference, and a deadline that a busy machine keeps: what matters is the verdict, not the figure.
[[nodiscard]] GateRequest corpusDefaults();

struct CorpusOptions {
    std::optional<kernel::Surface> surface; ///< nothing: all
    std::set<std::string> except;           ///< files left out: holes of the gate that are known and open
    std::string filter;                     ///< only candidates whose file has this in its name; empty: all
    int part = 1;                           ///< of `parts`: of these every so many, from this one on
    int parts = 1;
    bool chance = false; ///< only candidates that depend on chance
    int repeat = 1;      ///< how often each is gated
    /// How often a candidate is gated once more when its verdict is not the expected one; it stays a mismatch unless all of these are
    /// as expected. For a regression test on a machine that others use: a hole or a wrong expectation shows again, a busy moment does
    /// not. How often the gate misses is measured with repeat.
    int again = 0;
    GateRequest defaults = corpusDefaults(); ///< seeds, rounds and times of the candidates without a parent
    /// Timing of a candidate with a parent. Long enough for every buffer set to be run over many times, because that is what a
    /// candidate that keeps something between launches lives on.
    double compareSeconds = 1.5;
    int compareRounds = 1000;
    SupervisorOptions supervisor;
};

/// What the gate said about one candidate of a corpus.
struct CorpusOutcome {
    const CorpusEntry *entry = nullptr; ///< of the corpus that was run
    bool skipped = false;               ///< there is no device for its surface
    Verdict verdict;                    ///< not when skipped
    std::string mismatch;               ///< how the verdict is not the expected one; empty: it is
    std::string message;                ///< mismatch, why it was skipped, or the verdict's message
    double seconds = 0;                 ///< from the request to the verdict, the wait for the device too
    StageSeconds stages;                ///< of the trial
    bool repeated = false;              ///< it was not as expected, and is gated once more

    [[nodiscard]] bool ok() const { return skipped || mismatch.empty(); }
};

struct CorpusSummary {
    int asExpected = 0;
    int mismatches = 0;
    int skipped = 0;
    int repeated = 0; ///< of those as expected: were not at first
};

/// {"file", "kind", "expected": […], "got", "stage", "ok", "message", "seconds", "stages": {…}}, the stages as a trial has them, and
/// "repeated": true when it is gated once more; "got" is "skipped" when there is no device.
[[nodiscard]] std::string writeOutcome(const CorpusOutcome &outcome); ///< one line, no newline

/// Gates the candidates in order with one warm supervisor, so that what one leaves behind is there for the next. report is called for
/// each on the calling thread. Fails when the gate itself fails or is stopped.
[[nodiscard]] Result<CorpusSummary> runCorpus(const Corpus &corpus, const CorpusOptions &options,
                                              const std::stop_token &stop,
                                              const std::function<void(const CorpusOutcome &)> &report);

} // namespace klineage::gate
