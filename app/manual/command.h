// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace klineage::manual {

/// An option, or an argument that is known by its place and has no names.
struct Option {
    std::vector<std::string> names; ///< "-o", "--output"
    std::string value;              ///< "FILE"; empty: a flag
    std::vector<std::string> choices;
    std::string description;
    bool required = false;
    bool repeats = false;
};

/// What a program, or a verb of it, takes; as its --help says.
struct Command {
    std::string name;
    std::string description;
    std::string notes; ///< below its --help; lines are kept
    std::vector<Option> options;
    std::vector<Option> arguments;
    std::vector<Command> commands;
};

/// Without what is hidden from --help.
[[nodiscard]] Command commandOf(const CLI::App &app);

} // namespace klineage::manual
