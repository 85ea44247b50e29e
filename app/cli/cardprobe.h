// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

namespace CLI {
class App;
}

namespace klineage::cli {

/// `card probe`: a precondition is violated on purpose, and what the gate says of it is kept with the risk.
void addProbeCommand(CLI::App &group, Session &session);

} // namespace klineage::cli
