// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/supervisor.h"

namespace CLI {
class App;
}

/// `klineage-gate roofline`: prints, and where asked measures, what the devices of this machine can do.
struct RooflineCommand {
    bool measure = false;
    bool json = false;

    [[nodiscard]] CLI::App *add(CLI::App &app);
    [[nodiscard]] int run(const klineage::gate::SupervisorOptions &options) const;
};
