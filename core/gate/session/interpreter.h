// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace klineage::gate {

/// The command that starts Python for references and oracles: KLINEAGE_PYTHON, or python3 on PATH.
[[nodiscard]] std::string pythonInterpreter();

/// The last line with words of what a process wrote; empty when it wrote none.
[[nodiscard]] std::string lastLine(const std::string &text);

/// The same, shortened, as a sentence to go behind another one: " Its last words: …", or nothing.
[[nodiscard]] std::string lastWords(const std::string &text);

} // namespace klineage::gate
