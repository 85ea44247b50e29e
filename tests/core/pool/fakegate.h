// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatepool.h"

#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// The script that stands for a gate in tests of a pool, and trials that are asked of it.
namespace klineage::gate::test {

void writeText(const std::filesystem::path &path, const std::string &text);

/// A folder for tests/core/pool/fakegate.sh: its trials run while `hold` is there.
class FakeGateFolder
{
public:
    explicit FakeGateFolder(std::filesystem::path folder);
    [[nodiscard]] const std::filesystem::path &path() const { return m_folder; }
    void hold() const { writeText(m_folder / "hold", ""); }
    void release() const { std::filesystem::remove(m_folder / "hold"); }
    void releaseOne() const { writeText(m_folder / "one", ""); }
    /// The name of each trial that was begun, and the process that began it.
    [[nodiscard]] std::vector<std::pair<std::string, int>> begun() const;
    /// What it was told to compile beforehand, by name.
    [[nodiscard]] std::vector<std::string> prepared() const;
    /// A program that is such a gate.
    [[nodiscard]] std::filesystem::path program() const { return m_folder / "fake gate"; }

private:
    std::filesystem::path m_folder;
};

[[nodiscard]] GateRequest fakeRequest(const std::string &name);

/// A trial that is asked for on a thread of its own.
class Asked
{
public:
    Asked(GatePool &pool, GateRequest request);
    ~Asked();
    [[nodiscard]] bool isOver() const;
    [[nodiscard]] Result<Trial> result();      ///< waits
    [[nodiscard]] std::string problem() const; ///< of the result
    [[nodiscard]] bool wasTold(const std::string &part) const;
    [[nodiscard]] std::string told() const; ///< all progress, for messages
    void cancel() { m_stop.request_stop(); }

private:
    mutable std::mutex m_mutex;
    std::vector<std::string> m_told;
    std::optional<Result<Trial>> m_result;
    std::stop_source m_stop;
    std::jthread m_thread;
};

} // namespace klineage::gate::test
