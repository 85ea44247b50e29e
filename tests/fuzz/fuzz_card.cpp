// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/card.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::skills;

FuzzTarget fuzzTarget()
{
    Card card;
    card.name = "stage-reused-tiles";
    card.category = "tiling";
    card.locus = "k-loop";
    card.intent = {"Stage reused tiles.", {"sgemm/pocl/K01"}};
    card.anchor = {"A loop.", {"trial:0123456789abcdef"}};
    card.preconditions = {{"Reuse.", {"sgemm/pocl/K01"}}};
    card.effects = {{"Fewer loads.", {"sgemm/pocl/K01"}}};
    card.risks = {{"Two\nlines.", {"sgemm/pocl/R01a"}}};
    card.scope = {{"sgemm"}, {"opencl"}, {"pocl"}, {"tiling"}};
    card.provides = {{"k-loop", "shared_tile"}};
    card.evidence = {"sgemm/pocl/K01"};
    card.carrierFile = "carrier.cl";
    FuzzTarget target;
    target.seeds = {writeCard(card)};
    target.seedFiles = {"card.toml"};
    target.words = {"[[effect]]\n",
                    "[[risk]]\n",
                    "[scope]\n",
                    "[intent]\n",
                    "[[provides]]\n",
                    "text = ",
                    "evidence = [",
                    "name = ",
                    "retired = true\n",
                    "revision = 9223372036854775807\n",
                    "\"carrier.py\"",
                    "../carrier.cl",
                    "'''",
                    "\"",
                    "\n",
                    "=",
                    "[",
                    "]",
                    "{",
                    "\\u0000"};
    target.runs = 5'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const Result<Card> card = parseCard({reinterpret_cast<const char *>(data), size}, "fuzz.toml");
    if (!card) {
        requireLocated(card.error(), "fuzz.toml:");
        return 0;
    }
    const std::string written = writeCard(*card);
    const Result<Card> again = parseCard(written, "written");
    require(again.has_value(), "what is written can be read");
    require(*again == *card, "writing and reading keep the card");
    require(card->carrierFile.find('/') == std::string::npos, "the carrier stays in the folder");
    static_cast<void>(lintCard(*card, "code"));
    CardRecord record;
    record.card = *card;
    require(!writeSkillMarkdown(record).empty(), "every card has a SKILL.md");
    return 0;
}
