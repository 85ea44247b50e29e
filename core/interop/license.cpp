// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/license.h"

#include "core/files/atomicfile.h"
#include "core/files/utf8text.h"

namespace klineage::interop {

std::string licenseIn(const std::filesystem::path &folder)
{
    for (const char *name : {"LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "COPYING"}) {
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name, ignored)))
            continue; // a link may lead anywhere
        const Result<std::string> text = files::readFile(folder / name, std::size_t{1} << 20);
        if (!text || !files::isUtf8Text(*text))
            continue;
        const std::size_t begin = text->find_first_not_of(" \t\r\n#");
        if (begin == std::string::npos)
            continue;
        const std::string line = text->substr(begin, text->find_first_of("\r\n", begin) - begin);
        return line.substr(0, line.find_last_not_of(" \t") + 1).substr(0, 200);
    }
    return {};
}

} // namespace klineage::interop
