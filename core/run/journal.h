// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

/// A run is a deterministic function of its settings, the replies of its author and the trials of the gate. All three are written
/// down as they come, so that a run that was stopped or killed is gone on with by running it again from its beginning: what was
/// answered is answered from the record, free of charge and at once, and the run goes on where the record ends. The same makes a shipped
/// run a test: replayed from its record, it must come to the same steps byte for byte.
namespace klineage::run {

enum class Kind { Materialize, Deoptimize, Lift, Admit };
[[nodiscard]] const char *toString(Kind kind); ///< materialize deoptimize lift admit
[[nodiscard]] std::optional<Kind> kindFromString(std::string_view name);

/// runs/<id>/run.toml: written once, when the run is created.
struct Settings {
    std::string id; ///< folder name: [a-z0-9-], at most 64
    Kind kind = Kind::Materialize;
    std::string workload; ///< of the workspace
    std::string surface;  ///< "opencl", "cuda"
    std::string platform; ///< "pocl", "sm90"
    std::string policy;   ///< one of policy::policyNames(); empty unless materializing
    std::string
        subject; ///< what is worked on: a lineage key, card name or the root ("sgemm/pocl/K00"); a file's name
    std::string provider; ///< "anthropic", "openai", "manual", "exec", "replay"
    std::string model;
    double capDollars = 10;
    std::uint64_t seed = 0; ///< of the run's own choices; the gate's seeds are always its own
    int maxSteps = 0;       ///< 0: until the budget or the policy ends it
    std::map<std::string, std::string> options; ///< what only this kind or policy has
    /// How the provider is reached: "base_url", "command" (exec), "transcript" (replay), "paid" = "yes" | "no"; what
    /// goes to the server with each question: "temperature", "effort", "extra_body" (llm/modelsettings.h). Never a key.
    std::map<std::string, std::string> author;
    std::string created; ///< UTC; filled in by Journal::create()
};

[[nodiscard]] Result<Settings> parseSettings(std::string_view text, const std::string &fileName);
[[nodiscard]] std::string writeSettings(const Settings &settings);
[[nodiscard]] bool isRunId(std::string_view id); ///< 1 to 64 of [a-z0-9-]

/// A line of steps.jsonl: what a person steps through. Written when the step is over, never changed.
struct StepRecord {
    int number = 0; ///< 1, 2, …
    std::string time;
    std::string
        action; ///< "load", "complete", "repair", "replan", "rewrite", "rederive", "lift", "roundtrip", …
    std::string title;     ///< one line for people
    std::string outcome;   ///< "accepted", "rejected", "valid", "failed", "wrapper", "audited", "stored", …
    std::string reason;    ///< one sentence
    std::string candidate; ///< sha-256 of the text in candidates/; empty: the step made none
    std::string parent;    ///< sha-256 of the text that it was made from
    std::string trial;     ///< id in trials.jsonl
    std::vector<int> exchanges;     ///< numbers in transcript.jsonl
    std::vector<std::string> cards; ///< retrieved and shown
    double dollars = 0;             ///< of this step
    double totalDollars = 0;        ///< of the run up to and with this step
    double speedup = 0;             ///< T_ref / T_gen against the run's reference; 0: not measured
    double best = 0;                ///< running best of it
};

[[nodiscard]] std::string writeStep(const StepRecord &step);
[[nodiscard]] Result<StepRecord> parseStep(std::string_view line, const std::string &where);

/// How a run ended, and how a procedure did.
struct Ending {
    std::string
        code; ///< "complete", "step_limit", "rejection_limit", "budget", "stopped", "error"; empty: it has not
    std::string reason; ///< one sentence; may be empty

    /// A run that was stopped or failed can be gone on with; the others are over.
    [[nodiscard]] bool isOver() const;
    [[nodiscard]] std::string text() const; ///< "complete: Nothing is left.", "complete"
    friend bool operator==(const Ending &, const Ending &) = default;
};

/// The folder of a run: run.toml, steps.jsonl, transcript.jsonl, ledger.jsonl, trials.jsonl, candidates/<sha-256, 12 digits>.<ext>,
/// ending.toml.
struct RunRecord {
    Settings settings;
    std::vector<StepRecord> steps;
    std::vector<gate::Trial> trials;
    std::filesystem::path directory;
    std::string state; ///< "running" (a live process holds its lock), "stopped", "finished"
    Ending ending;
    std::vector<std::string> notices;
};
[[nodiscard]] Result<RunRecord> readRun(const std::filesystem::path &directory);
/// All of runs/, newest first; unreadable ones become messages in problems.
[[nodiscard]] std::vector<RunRecord> readRuns(const std::filesystem::path &runsDirectory,
                                              std::vector<Error> *problems = nullptr);
[[nodiscard]] std::string candidateFileName(const std::string &sha, kernel::Surface surface);

/// Whoever gates candidates for a run; the GateClient behind it in programs, a table in tests.
using GateFunction = std::function<Result<gate::Trial>(const gate::GateRequest &, std::stop_token,
                                                       const gate::ProgressCallback &)>;

/// Writes a run's folder and answers from it while it replays. Holds the folder's lock. One thread at a time.
class Journal
{
public:
    /// Makes the folder; Conflict when it exists.
    [[nodiscard]] static Result<Journal> create(const std::filesystem::path &runsDirectory,
                                                const Settings &settings);
    /// To go on with a run, or to replay one. Conflict while another process holds it.
    [[nodiscard]] static Result<Journal> open(const std::filesystem::path &directory);

    [[nodiscard]] const Settings &settings() const;
    [[nodiscard]] const std::filesystem::path &directory() const;

    /// The n-th call answers with the n-th recorded trial when there is one and it is of the same candidate, parent and workload
    /// (Conflict otherwise); else it calls the gate and records what that says. Stores the candidate's text first.
    [[nodiscard]] Result<gate::Trial> gate(const gate::GateRequest &request, const GateFunction &gate,
                                           std::stop_token stop, const gate::ProgressCallback &progress = {});
    /// Appends the step, or, while replaying, checks that the recorded one is the same but for its time (Conflict otherwise).
    /// The number is given here; the answer is the step as it stands in the record.
    [[nodiscard]] Result<StepRecord> step(StepRecord step);
    [[nodiscard]] const std::vector<StepRecord> &steps() const; ///< those that step() was called for
    /// The next gate() or step() is answered from the record.
    [[nodiscard]] bool isReplaying() const;
    /// A file of the run that is neither log nor candidate: what it took from the workspace when it began. The first call writes
    /// what make() says; every later one, in this process or another, answers with those bytes.
    [[nodiscard]] Result<std::string> keep(const std::string &fileName,
                                           const std::function<Result<std::string>()> &make);
    /// Writes why the run ended; a run without this was stopped or killed. Conflict when the run is over and its record goes on. The
    /// last call counts; but a run that is over stays over.
    [[nodiscard]] Status finish(const Ending &ending);

    Journal(Journal &&) noexcept;
    Journal &operator=(Journal &&) noexcept;
    ~Journal();

private:
    struct Private;
    explicit Journal(std::unique_ptr<Private> d);
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::run
