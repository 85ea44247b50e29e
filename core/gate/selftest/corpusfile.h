// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/candidate.h"
#include "core/trial/verdict.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

enum class CandidateKind {
    Hostile, ///< wants a good verdict without doing the work, or to reach what is not its own
    Broken,  ///< an honest mistake
    Honest,  ///< looks suspicious and must be accepted
};
[[nodiscard]] const char *toString(CandidateKind kind); ///< hostile broken honest

/// A candidate and the verdict that a trustworthy gate gives it.
struct CorpusEntry {
    std::string file; ///< relative to the corpus folder; its ending says the surface: .cl or .cu
    std::string workload;
    CandidateKind kind = CandidateKind::Hostile;
    std::string about; ///< the cheat, the mistake or the suspicion, in one sentence
    kernel::Surface surface;
    std::vector<VerdictStatus> expected; ///< any of these; not empty
    std::vector<Stage> stages;           ///< of a verdict that is not `correct`: any of these; empty: any
    std::string parent;                  ///< file to compare with; empty: none
    std::vector<Change> changes;         ///< of a `correct` verdict against the parent: any of these
    std::vector<std::string> hides;      ///< texts that must be nowhere in the verdict
    std::string harmless;                ///< why `correct` is acceptable of a candidate that is not honest
    double deadlineSeconds = 0;          ///< 0: the gate's own
    bool chance = false;                 ///< what it does depends on chance, or on what the gate draws
};

/// A folder of candidates with expected verdicts. File: corpus.toml, schema in tests/gate/corpus/README.md.
struct Corpus {
    std::filesystem::path directory;          ///< where it was read from; not part of the file
    std::vector<std::string> workloadFolders; ///< relative to directory; searched in this order
    std::vector<CorpusEntry> entries;         ///< in the order of the file

    /// The folder that holds the workload.toml of a workload.
    [[nodiscard]] Result<std::filesystem::path> workloadDirectory(const std::string &workload) const;
};

[[nodiscard]] Result<Corpus> parseCorpus(std::string_view text, const std::string &fileName);
/// Reads directory/corpus.toml; fails too when a candidate, parent or workload that it names is not there.
[[nodiscard]] Result<Corpus> readCorpus(const std::filesystem::path &directory);

/// How a verdict differs from what the entry expects, as a sentence; empty when it does not.
[[nodiscard]] std::string mismatch(const CorpusEntry &entry, const Verdict &verdict);

} // namespace klineage::gate
