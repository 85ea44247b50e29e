// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

namespace CLI {
class App;
}

namespace klineage::cli {

/// `card judge`: the recorded roundtrips of cards, judged by their typed effects.
void addJudgeCommand(CLI::App &group, Session &session);

} // namespace klineage::cli
