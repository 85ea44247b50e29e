// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

#include "core/pool/gatepool.h"
#include "core/run/drive/drive.h"
#include "core/run/summary.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>

namespace klineage::cli {

/// The folder of a run: a folder that holds a run.toml, or runs/<name> of the workspace; otherwise the exit status, after saying so.
[[nodiscard]] tl::expected<std::filesystem::path, int> findRun(const Session &session,
                                                               const std::string &name);

/// Says on stderr what a run does: a line a step and, on a terminal, what it is busy with. Steps up to the given number are not said.
class RunPrinter
{
public:
    explicit RunPrinter(int quietUpTo = 0, std::string prefix = {});
    [[nodiscard]] run::Watcher watcher();
    void clear() const; ///< the line of what it is busy with
    void notice(const std::string &text) const;

private:
    void busy(const std::string &what) const;
    void stepped(const run::StepRecord &step) const;

    int m_quietUpTo;
    std::string m_prefix;
    bool m_isTerminal;
};

/// What a run asks for trials; the pool must outlive it.
[[nodiscard]] run::GateFunction gateOf(gate::GatePool &pool);

[[nodiscard]] nlohmann::json summaryJson(const run::RunRecord &record);
[[nodiscard]] nlohmann::json stepJson(const run::StepRecord &step);
[[nodiscard]] std::string formatDollars(double dollars); ///< "$0.0123"
[[nodiscard]] std::string formatFactor(double speedup);  ///< "1.482×"; "–" for what was not measured
/// The run as a person reads it after it ended: how, what it brought, what it cost.
void printSummary(const run::RunRecord &record);

} // namespace klineage::cli
