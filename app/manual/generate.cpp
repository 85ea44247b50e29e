// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/manual/pages.h"

#include "core/files/atomicfile.h"

#include <cstdio>
#include <string_view>

namespace klineage::manual {

std::optional<int> generateIfAsked(int argc, char **argv, const std::function<Command()> &describe)
{
    if (argc != 3 || std::string_view(argv[1]) != "--generate")
        return std::nullopt;
    const Command program = describe();
    const std::filesystem::path folder = argv[2];
    const std::pair<std::string, std::string> pages[] = {{program.name + ".1", manPage(program)},
                                                         {program.name + ".bash", bashCompletion(program)},
                                                         {"_" + program.name, zshCompletion(program)},
                                                         {program.name + ".fish", fishCompletion(program)}};
    for (const auto &[name, text] : pages) {
        if (const Status written = files::writeFileAtomic(folder / name, text); !written) {
            std::fprintf(stderr, "%s: %s\n", program.name.c_str(), written.error().message.c_str());
            return 3;
        }
    }
    return 0;
}

} // namespace klineage::manual
