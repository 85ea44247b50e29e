// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/llm/prices.h"

#include <cstdlib>

namespace klineage::llm {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxFileBytes = std::size_t{1} << 20;

constexpr const char *builtIn =
#include "pricestable.inc"
    ;

} // namespace

fs::path ownPriceFile()
{
    fs::path folder;
    if (const char *configuration = std::getenv("XDG_CONFIG_HOME"); configuration && *configuration == '/')
        folder = configuration;
    else if (const char *home = std::getenv("HOME"); home && *home == '/')
        folder = fs::path(home) / ".config";
    return folder.empty() ? fs::path() : folder / "klineage" / "prices.toml";
}

Result<PriceTable> loadPrices(const fs::path &workspace)
{
    const fs::path inWorkspace = workspace.empty() ? fs::path() : workspace / "prices.toml";
    for (const fs::path &file : {inWorkspace, ownPriceFile()}) {
        if (file.empty())
            continue;
        const Result<std::string> text = files::readFile(file, maxFileBytes);
        if (text)
            return parsePrices(*text, file.string());
        // A table that is there but cannot be read is not passed over: other prices would apply than the person thinks.
        if (text.error().code != ErrorCode::NotFound)
            return tl::unexpected(text.error());
    }
    return parsePrices(builtIn, "the built-in prices.toml");
}

Error unknownPrice(const PriceTable &table, std::string_view model)
{
    const std::string name = validUtf8(model.substr(0, 200));
    const fs::path own = ownPriceFile();
    const std::string where = own.empty() ? "prices.toml in the workspace"
                                          : "prices.toml in the workspace, or to '" + own.string() + "'";
    return {
        ErrorCode::NotFound,
        "There is no price for the model '" + name + "' in " + table.file
            + ", so its requests cannot be kept within a budget.",
        "Add its price in dollars per million tokens to " + where
            + " (begin with a copy of what `klineage-cli llm prices --toml` prints):\n\n[[model]]\nname = \""
            + name + "\"\ninput = 0.0\ncache_read = 0.0\ncache_write = 0.0\noutput = 0.0"};
}

} // namespace klineage::llm
