// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/lineage/comments.h"
#include "core/trial/trial.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace klineage::lineage {

/// A state K_i: one candidate file and the trial that stands for it.
struct State {
    std::string id;    ///< "K00" … "Knn"; the last one is K*
    std::string file;  ///< relative to the lineage folder
    std::string title; ///< "shared-memory tiles"
    std::string trial; ///< id of its trial in trials.jsonl; empty: not gated yet
};

/// τ_i: K_{i-1} → K_i. The forward diff is computed from the two files, never stored.
struct Transition {
    std::string from;
    std::string to;
    std::string category; ///< "tiling", "vectorization", …
    std::string locus;    ///< "k-loop operand load"
    std::string summary;  ///< one sentence
    std::string card;     ///< skills/<card>; may be empty

    // What was derived forward on `from` from category and locus alone; empty unless guided deoptimization recorded the step.
    std::string rederived{};      ///< its file, "rederived/K03.cl"
    std::string rederivedTrial{}; ///< its trial against `from`
    std::string rederivedMatch{}; ///< its trial against `to`: the same status, the latency within the limit
};

/// A candidate tried from a state that did not become the next one. Kept as evidence.
struct Attempt {
    std::string id;     ///< "R02a"
    std::string parent; ///< state id
    std::string file;
    std::string title;
    std::string category;
    std::string locus;
    std::string reason; ///< why it was rejected, in words; the numbers are in the trial
    std::string trial;
};

/// A trial that a person or a policy made from a state and nobody has named: shown as a branch of the graph. Repeated trials of a
/// state's or attempt's own file are no branches; one gated again from a state on one device is one branch, with its newest trial.
struct Branch {
    std::string trial;
    std::string parent; ///< state id (by the parent's sha-256)
    std::string file;   ///< branches/<sha-256, 12 digits>.cl
};

/// Written by hand or by deoptimization: workloads/<w>/lineages/<folder>/lineage.toml.
struct Lineage {
    std::string workload;
    std::string platform; ///< "sm90", "pocl"; the folder's name begins with it
    std::string name;     ///< tells several lineages of one platform apart; empty: the folder is the platform
    kernel::Surface surface;
    std::string title;
    std::string origin;      ///< where the expert kernel comes from, and its licence
    std::string termination; ///< "complete" | "step_limit" | "rejection_limit" | "unknown"
    std::string reason;
    std::string run;                     ///< runs/<run> that wrote it; empty: written by hand
    std::vector<State> states;           ///< K0 first
    std::vector<Transition> transitions; ///< states.size() - 1, chained
    std::vector<Attempt> attempts;

    std::filesystem::path directory;    ///< not part of the file
    std::vector<gate::Trial> trials;    ///< all of trials.jsonl, in file order
    std::vector<Branch> branches;       ///< derived: trials with a parent here that no state or attempt names
    std::vector<CommentEvent> comments; ///< all of comments.jsonl, in file order
    std::vector<std::string> notices;   ///< what was recovered or is inconsistent, whole sentences

    /// The folder's name: "pocl", "pocl-walked".
    [[nodiscard]] std::string folder() const { return name.empty() ? platform : platform + "-" + name; }
    [[nodiscard]] std::string key() const { return workload + "/" + folder(); }
    [[nodiscard]] const State *findState(std::string_view id) const;
    [[nodiscard]] const gate::Trial *findTrial(std::string_view trialId) const;
    [[nodiscard]] const gate::Trial *trialOf(const State &state) const;
    [[nodiscard]] const gate::Trial *trialOf(const Attempt &attempt) const;
    [[nodiscard]] const Transition *transitionTo(std::string_view stateId) const;
};

/// 1 to 32 letters, digits, '-' or '_': what states and attempts may be called.
[[nodiscard]] bool isStateId(std::string_view text);
[[nodiscard]] Result<Lineage> parseLineage(std::string_view text,
                                           const std::string &fileName); ///< lineage.toml alone
[[nodiscard]] std::string writeLineage(const Lineage &lineage);
/// lineage.toml, trials.jsonl and comments.jsonl. A torn last line of a log is dropped and said in notices.
[[nodiscard]] Result<Lineage> readLineage(const std::filesystem::path &directory);

/// "branches/<sha-256, 12 digits>.cu", with the surface's extension: where storeBranch puts a candidate.
[[nodiscard]] std::string branchFileName(const std::string &candidateSha, kernel::Surface surface);

/// Appends one line to trials.jsonl and flushes it to the disk. Safe against a kill at any instant and against other writers.
[[nodiscard]] Status appendTrial(const std::filesystem::path &lineageDirectory, const gate::Trial &trial);
/// Stores a candidate that is no state: branches/<sha-256, 12 digits>.<ext>; returns the relative name.
[[nodiscard]] Result<std::string> storeBranch(const std::filesystem::path &lineageDirectory,
                                              std::string_view candidateText, kernel::Surface surface);

} // namespace klineage::lineage
