// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <nlohmann/json.hpp>

namespace klineage::gate::protocol {

/// Raised when a message changes its meaning; both ends are the same program, so it only catches mixed installations.
inline constexpr int version = 5;
/// Descriptors of the worker and the compiler: the socket that carries frames, and the memory that carries bulk bytes.
inline constexpr int socketFd = 3;
inline constexpr int memoryFd = 4;

// Values as JSON; codec.h reads them.
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
[[nodiscard]] nlohmann::json write(const Guards &guards);
[[nodiscard]] nlohmann::json write(const OutputSets &outputs);
[[nodiscard]] nlohmann::json write(const std::vector<CopyRange> &ranges);
[[nodiscard]] nlohmann::json write(const std::vector<std::vector<CopyRange>> &sets);
[[nodiscard]] nlohmann::json write(const TimedRun &run);
[[nodiscard]] nlohmann::json write(const TimedSample &sample); ///< without its fingerprints
[[nodiscard]] nlohmann::json write(const EnergyReading &reading);
[[nodiscard]] nlohmann::json write(const Error &error);

} // namespace klineage::gate::protocol
