// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What a lineage's folder keeps of its roundtrips (roundtrip.h): roundtrip/log.jsonl, and what it comes to.
namespace klineage::run {

/// Of the last state's speed: what counts as recovered.
inline constexpr double recoveredShare = 0.9;

/// A line of roundtrip/log.jsonl in the lineage's folder: one reply and what came of it.
struct RoundtripLine {
    std::string arm;
    int trial = 1;
    int number = 0;
    std::string provider = "manual"; ///< who answered; "manual": through files
    std::vector<std::string> cards;  ///< names, in the order in which the prompt shows them
    std::string prompt;              ///< sha-256 of the prompt file
    std::string reply;               ///< sha-256 of the reply file
    std::string file;                ///< of the candidate, in roundtrip/; empty when the reply has none
    std::string outcome;
    std::string reason;
    std::optional<double> share; ///< of the last state's speed
    std::string trialId;         ///< in roundtrip/trials.jsonl; empty when nothing was gated
};
/// An empty list when there is no log.
[[nodiscard]] Result<std::vector<RoundtripLine>> readRoundtrips(
    const std::filesystem::path &lineageDirectory);

/// What came of an arm: a trial counts once, by its best reply.
struct RoundtripCount {
    std::string arm;
    int trials = 0;
    int correct = 0; ///< with a correct reply
    int recovered = 0;
    double medianShare = 0; ///< of the trials; one without a correct reply counts as 0
    int first = 0;          ///< recovered by the first reply
};
[[nodiscard]] std::vector<RoundtripCount> countRoundtrips(const std::vector<RoundtripLine> &lines);

/// Where log, candidates and trials of a lineage's roundtrips are.
[[nodiscard]] std::filesystem::path roundtripFolder(const std::filesystem::path &lineageDirectory);
[[nodiscard]] Status appendRoundtrip(const std::filesystem::path &lineageDirectory,
                                     const RoundtripLine &line);

} // namespace klineage::run
