// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/interpreter.h"

#include <cstdlib>

namespace klineage::gate {

std::string pythonInterpreter()
{
    const char *named = std::getenv("KLINEAGE_PYTHON");
    return named && *named ? named : "python3";
}

std::string lastLine(const std::string &text)
{
    const auto end = text.find_last_not_of(" \n\r\t");
    if (end == std::string::npos)
        return {};
    const auto begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::string lastWords(const std::string &text)
{
    const std::string last = lastLine(text);
    return last.empty() ? "" : " Its last words: " + last.substr(0, 400);
}

} // namespace klineage::gate
