// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace klineage::gate {

/// The command that starts Python for references and oracles: KLINEAGE_PYTHON, or python3 on PATH.
[[nodiscard]] std::string pythonInterpreter();

/// Where the interpreter is that pythonInterpreter() starts, which may be a script that starts another one.
struct Interpreter {
    std::string executable;
    std::string userBase;                       ///< site.getuserbase(); empty: it has none
    std::vector<std::filesystem::path> folders; ///< that it is in, and that it imports from
};

/// Asks it. Unavailable: "Cannot (purpose): …". Nothing but the interpreter's own start is run.
[[nodiscard]] Result<Interpreter> findInterpreter(const std::string &purpose);

/// The last line with words of what a process wrote; empty when it wrote none.
[[nodiscard]] std::string lastLine(const std::string &text);

/// The same, shortened, as a sentence to go behind another one: " Its last words: …", or nothing.
[[nodiscard]] std::string lastWords(const std::string &text);

} // namespace klineage::gate
