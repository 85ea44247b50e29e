// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <chrono>
#include <utility>

namespace klineage::gate {

/// Adds up the seconds of each stage of a trial. One thread.
class StageClock
{
public:
    using Stage = double StageSeconds::*;

    /// From here on time counts to this stage; the one that it counted to before.
    Stage enter(Stage stage)
    {
        const auto now = std::chrono::steady_clock::now();
        if (m_stage)
            m_seconds.*m_stage += std::chrono::duration<double>(now - m_since).count();
        m_since = now;
        return std::exchange(m_stage, stage);
    }
    void begin()
    {
        m_seconds = {};
        m_stage = nullptr;
        (void)enter(&StageSeconds::start);
    }
    [[nodiscard]] StageSeconds end()
    {
        (void)enter(nullptr);
        return std::exchange(m_seconds, {});
    }

private:
    StageSeconds m_seconds;
    Stage m_stage = nullptr;
    std::chrono::steady_clock::time_point m_since;
};

} // namespace klineage::gate
