// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/prices.h"
#include "tests/fuzz/target.h"

#include <cmath>

using namespace klineage;
using namespace klineage::llm;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        "date = \"2026-11-21\"\nsource = \"x\"\n[[model]]\nname = \"m*\"\ninput = 1\noutput = 2.5\n"
        "long_prompt = { above = 100, input = 2, output = 5 }\n"};
    target.seedFiles = {"prices.toml"};
    target.words = {"[[model]]\n",
                    "name = ",
                    "input = ",
                    "output = ",
                    "cache_read = ",
                    "cache_write = ",
                    "long_prompt = {",
                    "above = ",
                    "\"m\"\n",
                    "*",
                    "inf",
                    "nan",
                    "-0.0",
                    "date = "};
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const Result<PriceTable> table = parsePrices(text, "prices.toml");
    if (!table) {
        requireLocated(table.error(), "prices.toml:");
        return 0;
    }
    const Result<PriceTable> again = parsePrices(writePrices(*table), "written");
    require(again && again->prices == table->prices && again->date == table->date,
            "writing and reading keep the table");
    Request request;
    request.system = "0123456789";
    request.maxOutputTokens = 10;
    for (const Price &price : table->prices) {
        const double most = mostDollars(price, request);
        require(std::isfinite(most) && most >= 0, "a bound is an amount");
        const std::int64_t input = mostInputTokens(request);
        for (const Usage &usage :
             {Usage{input, 0, 0, 10}, Usage{0, input, 0, 10}, Usage{0, 0, input, 10}, Usage{1, 1, 1, 1}})
            require(dollars(price, usage) <= most * (1 + 1e-12),
                    "no usage within the request costs more than the bound");
    }
    return 0;
}
