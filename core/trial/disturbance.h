// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <vector>

namespace klineage::gate {

/// What beside the kernel had a part in the times of a trial, as far as the trial recorded it.
struct Disturbance {
    enum class Kind {
        Load, ///< amount: load of the last minute (processes that ran or waited), of: threads of the processor
        Held,     ///< the device held its clock back for heat or for its power supply
        Unsteady, ///< amount: rounds thrown away because the clock moved, of: rounds that were kept
    };
    Kind kind = Kind::Load;
    double amount = 0;
    double of = 0;

    friend bool operator==(const Disturbance &, const Disturbance &) = default;
};

/// Those that are large enough to say so; none for a trial that was not timed, or that recorded nothing of the kind.
/// Load counts where the processor is the device. The trial itself makes a load of one a thread at most; others are at work from half
/// of that more on. A power limit is no disturbance: it is the kernel that draws the power. A clock is unsteady where as many rounds
/// were thrown away as were kept.
[[nodiscard]] std::vector<Disturbance> disturbancesOf(const Trial &trial);

} // namespace klineage::gate
