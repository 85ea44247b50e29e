// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/turn.h"

#include <utility>

namespace klineage::gate {

namespace {

constexpr double patienceSeconds = 1800;

} // namespace

StageResult<void> awaitTurn(DeviceTurn &turn, const std::filesystem::path &folder,
                            const std::function<std::optional<Verdict>()> &refusal,
                            const std::stop_token &stop, const ProgressCallback &progress, Trial &trial)
{
    if (folder.empty())
        return {};
    std::optional<Verdict> refused;
    std::stop_source leave;
    const std::stop_callback forward(stop, [&leave] { leave.request_stop(); });
    bool asked = !refusal;
    const auto waiting = [&] {
        if (progress)
            progress({Stage::Compile, -1, "waiting for another trial on the device"});
        if (!std::exchange(asked, true))
            refused = refusal();
        if (refused)
            leave.request_stop();
    };
    const auto outcome = turn.take(folder, DeviceTurn::nameOf(trial.surface->device), patienceSeconds,
                                   leave.get_token(), waiting);
    if (refused && !stop.stop_requested()) {
        turn.release();
        return tl::unexpected<TrialEnd>(std::move(*refused));
    }
    if (outcome == DeviceTurn::Outcome::Cancelled)
        return tl::unexpected<TrialEnd>(Error{ErrorCode::Cancelled, "The trial was cancelled.", {}});
    if (outcome == DeviceTurn::Outcome::NotHad)
        trial.verdict.evidence.push_back(
            {"turn", "not had: other trials may have run on the device at the same time"});
    return {};
}

} // namespace klineage::gate
