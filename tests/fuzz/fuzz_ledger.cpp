// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/ledger.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::llm;

FuzzTarget fuzzTarget()
{
    const std::string reserve =
        R"({"reserve":{"id":"r1","micro_dollars":500000,"purpose":"load","time":"2026-11-21T12:00:00.000Z"}})"
        "\n";
    const std::string settle =
        R"({"settle":{"id":"r1","micro_dollars":400000,"note":"why","time":"t","usage":{"cache_read":0,"cache_write":3,"input":1,"output":2}}})"
        "\n";
    std::string second = reserve;
    second.replace(second.find("r1"), 2, "r2");
    FuzzTarget target;
    target.seeds = {reserve, reserve + settle, reserve + second + settle};
    target.words = {
        reserve,  settle, "\n",   "{",       "}",         "\"",  "\"id\":\"r2\"", "\"micro_dollars\":",
        "\"r1\"", "null", "true", "\\u0000", "\"note\":", "\xff"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const Result<Ledger> ledger = Ledger::parse(text, "ledger.jsonl", 10);
    if (!ledger) {
        requireLocated(ledger.error(), "ledger.jsonl:");
        return 0;
    }
    require(ledger->spentDollars() >= 0 && ledger->reservedDollars() >= 0, "sums are never negative");
    require(ledger->leftDollars() >= 0 && ledger->leftDollars() <= 10, "what is left lies within the cap");
    require(ledger->leftDollars()
                <= std::max(0.0, 10 - ledger->spentDollars() - ledger->reservedDollars()) + 1e-6,
            "what is spent and reserved is not left");
    require(isSane(ledger->usage()) || ledger->requests() > 1, "usage is a sum of sane counts");
    return 0;
}
