// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

namespace klineage::cli {

/// `mcp`: a Model Context Protocol server over stdio.
void addMcpCommand(CLI::App &app, Session &session);

} // namespace klineage::cli
