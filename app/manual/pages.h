// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/manual/command.h"

#include <functional>
#include <optional>

namespace klineage::manual {

/// A manual page of section 1, for man.
[[nodiscard]] std::string manPage(const Command &program);

// Completion of a shell: verbs, options and the values that an option has to choose from; files for all others.
[[nodiscard]] std::string bashCompletion(const Command &program);
[[nodiscard]] std::string zshCompletion(const Command &program);
[[nodiscard]] std::string fishCompletion(const Command &program);

/// `PROGRAM --generate DIR`, a step of the build: writes PROGRAM.1, PROGRAM.bash, _PROGRAM and PROGRAM.fish there and returns the exit
/// status. Nothing for any other command line.
[[nodiscard]] std::optional<int> generateIfAsked(int argc, char **argv,
                                                 const std::function<Command()> &describe);

} // namespace klineage::manual
