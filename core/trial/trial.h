// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/candidate.h"
#include "core/trial/verdict.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace klineage::gate {

/// Where a trial ran. Free-form facts ("driver", "nvrtc", "sm_clock_mhz", "temperature_c", "cpu", "pocl") beside the fixed ones.
struct Environment {
    std::string platform; ///< "sm90", "pocl": the platform scope of the evidence
    std::string device;   ///< "NVIDIA H200"
    std::map<std::string, std::string> facts;
};

/// One figure of the profile, for example {"registers", 128, "", ""} or {"dram_bytes", …}.
struct Metric {
    std::string name; ///< lower_snake_case, stable
    double value = 0;
    std::string unit;   ///< "ns", "B", "FLOP/s", "B/s", "%", "" for counts
    std::string kernel; ///< the launch it belongs to; empty: the whole run
};

/// A line of the candidate's file, and how many samples of the program counter found warps there: where the time goes.
struct Hotspot {
    std::string kernel;
    int line = 0; ///< 1-based; 0: instructions that come from elsewhere, such as the compiler's headers
    std::int64_t samples = 0;
    std::map<std::string, std::int64_t>
        stalls; ///< why they waited there -> samples; "selected": they did not
};

/// Raw latencies of one subject, one entry a round, in nanoseconds.
struct Samples {
    std::string subject; ///< "candidate", "parent", or the reference's name, as in Comparison
    std::vector<double> ns;
};

/// Where the seconds of a trial went. 0: it did not come to that.
struct StageSeconds {
    double start = 0;   ///< until there was a worker
    double compile = 0; ///< compiling, loading, and evaluating the plan for every case
    double oracle = 0;  ///< inputs and expected outputs
    double check = 0;   ///< the rest of the correctness stage
    double profile = 0; ///< everything after it
};

/// How far the figures of a trial rest on what the candidate cannot touch.
enum class Trust {
    Unsaid,   ///< by a gate that did not say it yet
    Isolated, ///< it shares neither clock nor address space with what measures it
    Audited,  ///< it shares them, but is confined, and the supervisor's own clock and memory agreed
    Advisory, ///< it shares them, and nothing of that was in force: a hint, which admits nothing
};
[[nodiscard]] const char *toString(Trust trust); ///< isolated audited advisory; "not said"

/// One run of the gate. A line of trials.jsonl; written once, never changed.
struct Trial {
    std::string id;   ///< 16 hex digits, random
    std::string time; ///< UTC, ISO 8601
    std::string workload;
    std::string candidate; ///< sha-256 of the candidate file
    std::string file;      ///< name of the candidate's file, relative to the lineage folder; may be empty
    std::string parent;    ///< sha-256 of the parent's file; empty: none
    kernel::Surface surface;
    std::map<std::string, std::int64_t> tunables;
    std::vector<std::uint64_t> seeds;
    std::string replayOf; ///< id of the trial whose seeds these are; empty: nobody knew them before
    Environment environment;
    Trust trust = Trust::Unsaid; ///< evidence "trust" has what it rests on
    Verdict verdict;
    Interval latencyNs;       ///< median and 95 % interval of the timed case; zeros unless timed
    double achievedFlops = 0; ///< FLOP/s at the median
    double achievedBytes = 0; ///< B/s at the median, of the workload's minimal bytes
    std::vector<Metric> metrics;
    std::vector<Hotspot> hotspots; ///< most samples first; empty unless asked for
    std::vector<Samples> samples;
    std::string listing;     ///< sha-256 of the text of a Listing (listing.h); empty: none was kept
    std::string listingText; ///< that text, until it is stored
    StageSeconds stages;
    std::string gateVersion;

    [[nodiscard]] const Comparison *comparison(std::string_view against) const;
    /// The headline: the fastest of the vendor references that were right in this run (least latency in the same rounds); the
    /// others are listed in the verdict's comparisons. nullptr: none took part, and the evidence says why.
    [[nodiscard]] const Comparison *referenceComparison() const;

    /// Whether claims may rest on it: not on what is advisory, nor on inputs that were known before. What does not say is taken.
    [[nodiscard]] bool admits() const { return trust != Trust::Advisory && replayOf.empty(); }
};

void to_json(nlohmann::json &json, const Trial &trial);
void from_json(const nlohmann::json &json, Trial &trial); ///< throws nlohmann::json::exception on bad input

/// As it travels from the gate to who keeps it: with the text of its listing as "listing_text", which from_json reads.
[[nodiscard]] nlohmann::json carryTrial(const Trial &trial);
[[nodiscard]] std::string writeTrial(const Trial &trial); ///< a line of trials.jsonl, no newline
[[nodiscard]] Result<Trial> parseTrial(std::string_view line, const std::string &where);

} // namespace klineage::gate
