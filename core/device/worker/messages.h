// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <nlohmann/json.hpp>

namespace klineage::gate::protocol {

/// Raised when a message changes its meaning; both ends are the same program, so it only catches mixed installations.
inline constexpr int version = 4;
/// Descriptors of the worker and the compiler: the socket that carries frames, and the memory that carries bulk bytes.
inline constexpr int socketFd = 3;
inline constexpr int memoryFd = 4;

// Values as JSON and back. Reading throws nlohmann::json::exception or std::exception on bad input: the peer is not trusted, so
// every caller catches it and ends the session.
[[nodiscard]] nlohmann::json write(const kernel::Bindings &bindings);
[[nodiscard]] nlohmann::json write(const Environment &environment);
[[nodiscard]] nlohmann::json write(const std::vector<Metric> &metrics);
[[nodiscard]] nlohmann::json write(
    const std::vector<ListedInstruction> &instructions);         ///< without their text
[[nodiscard]] nlohmann::json write(const CompileOutput &output); ///< without the binary
[[nodiscard]] nlohmann::json write(const kernel::ResolvedPlan &plan);
[[nodiscard]] nlohmann::json write(const std::vector<BufferSet> &sets);
[[nodiscard]] nlohmann::json write(const ReferenceCall &call);
[[nodiscard]] nlohmann::json write(const FillSets &fills);
[[nodiscard]] nlohmann::json write(const OutputSets &outputs);
[[nodiscard]] nlohmann::json write(const std::vector<CopyRange> &ranges);
[[nodiscard]] nlohmann::json write(const TimedRun &run);
[[nodiscard]] nlohmann::json write(const TimedSample &sample); ///< without its fingerprints
[[nodiscard]] nlohmann::json write(const EnergyReading &reading);
[[nodiscard]] nlohmann::json write(const Error &error);

[[nodiscard]] kernel::Bindings readBindings(const nlohmann::json &json);
[[nodiscard]] Environment readEnvironment(const nlohmann::json &json);
[[nodiscard]] std::vector<Metric> readMetrics(const nlohmann::json &json);
[[nodiscard]] std::vector<ListedInstruction> readInstructions(const nlohmann::json &json);
[[nodiscard]] CompileOutput readCompileOutput(const nlohmann::json &json);
[[nodiscard]] kernel::ResolvedPlan readPlan(const nlohmann::json &json);
[[nodiscard]] std::vector<BufferSet> readSets(const nlohmann::json &json);
[[nodiscard]] ReferenceCall readReferenceCall(const nlohmann::json &json);
[[nodiscard]] FillSets readFills(const nlohmann::json &json);
[[nodiscard]] OutputSets readOutputs(const nlohmann::json &json);
[[nodiscard]] std::vector<CopyRange> readRanges(const nlohmann::json &json);
[[nodiscard]] TimedRun readTimedRun(const nlohmann::json &json);
[[nodiscard]] TimedSample readTimedSample(
    const nlohmann::json &json);                                    ///< ns is positive, clockMhz not negative
[[nodiscard]] EnergyReading readEnergy(const nlohmann::json &json); ///< all positive
[[nodiscard]] Error readError(const nlohmann::json &json);

} // namespace klineage::gate::protocol
