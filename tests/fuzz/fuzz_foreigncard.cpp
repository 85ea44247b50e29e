// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/foreigncard.h"
#include "core/interop/cards/frontmatter.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::interop;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        "---\nskill_id: a.b\nintent: >-\n  i\n  j\npreconditions:\n- 'x: y'\n- k: v\nscope: {cases: [a, \"b\"], languages: [cuda],\n"
        "  platforms: [sm_90a]}\n---\n# A\n## B\n```cuda\n__global__\n```\n~~~cl\nx\n",
        "---\nname: a\ndescription: |\n  Use when\n   x\nmetadata:\n  a: b\n---\n```python\nx\n```\n",
        R"([{"skill_id":"a","intent":{"text":"i"},"carrier":{"code":"c"},"precondition":["p",{"text":"q"}],)"
        R"("evidence":[{"action_category":"t","citation":"a/b/K01","rejected_evidence":["a/b/R01"]}],)"
        R"("scope":{"languages":["cuda"]},"provides":[{"locus":"l","name":"n"}],"verification_log":[{}]}])",
        R"({"states":[],"skills":[{"intent":"i"}]})"};
    target.words = {"---\n", ": ",  "- ",   "[",     "{",      "]",           "}",       "'",        "\"",
                    "|\n",   ">\n", "# ",   "```\n", "~~~",    "\n  ",        "\t",      "skill_id", "intent",
                    "scope", "&",   "null", "[[[[",  "skills", "description", "carrier", "\\u0000",  "\xff"};
    target.runs = 6'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const ForeignLibrary library{"here", "unknown"};
    const auto check = [](const ForeignCard &foreign) {
        require(skills::isCardName(foreign.card.name), "a name that is accepted");
        require(foreign.card.imported.has_value(), "an origin");
        require(!foreign.card.intent.text.empty(), "an intent");
        require(foreign.card.carrierFile.empty() == foreign.carrier.empty(), "a carrier has a file");
    };
    if (const auto skill = readSkillFile(text, "folder", library))
        check(*skill);
    else
        require(skill.error().code == ErrorCode::InvalidInput && skill.error().message.ends_with('.'),
                "a reason is a sentence");
    if (const auto cards = readCardJson(text, "file", library)) {
        for (const Result<ForeignCard> &card : *cards) {
            if (card)
                check(*card);
        }
    }
    require(skills::isCardName(cardNameFrom(text)), "every name is mapped to one that is accepted");
    static_cast<void>(platformFrom(text));
    return 0;
}
