// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/candidate.h"
#include "core/policy/plan.h"
#include "core/talk/reply.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::policy;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        "Words.\n```c\n/*klineage\nsurface = \"opencl\"\n*/\ncode\n```\nMore.",
        "````\n/*klineage\n*/\n```\n#define A\n````",
        "~~~\n/*klineage\r\n*/ // x\r\n~~~",
        "**DONE**: nothing is left",
        "/*klineage\n*/ bare /* c */",
        "\"\"\"klineage\nsurface = \"triton\"\n\"\"\"\nimport triton\n",
        "<think>\n```\nx\n```\n</think>\n```\n/*klineage\n*/\na\n```\n```\n/*klineage\n*/\nb\n```\n```sh\nc",
        "hm ```\n</think> <thinking>x</thinking>\n```\n/*klineage\n*/\n```",
        "tile: missing\nvectorize: present - it is\n# no\nprefetch: skip"};
    target.words = {"<think>",
                    "</think>",
                    "\n</thinking>",
                    "```",
                    "~~~",
                    "````\n",
                    "\n```\n",
                    "/*klineage",
                    "*/",
                    "DONE",
                    "//",
                    "\r\n",
                    "   ```",
                    "#",
                    ": missing",
                    "tile",
                    ": present",
                    "\t",
                    ": skip\n",
                    std::string(1, '\0')};
    target.runs = 20'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const Result<Reading> reading = readCandidateReply(text);
    if (!reading) {
        require(reading.error().code == ErrorCode::InvalidInput, "a bad reply is InvalidInput");
        require(reading.error().message.ends_with('.'), "the message is a sentence");
    } else if (reading->kind == Reading::Kind::Block) {
        const std::string &block = reading->text;
        require(kernel::planCommentOf(std::string_view(block)) && block.ends_with('\n'),
                "a candidate begins with its plan");
        require(block.find('\0') == std::string::npos, "a candidate is text");
        require(block.size() <= size + 1, "nothing is added");
        const Result<Reading> again = readCandidateReply("~~~~~~~~\n" + block + "~~~~~~~~");
        require(block.find("~~~~~~~~") != std::string::npos || (again && again->text == block),
                "what was read is read again");
        static_cast<void>(normalizedCode(block));
    } else {
        require(reading->text.find('\n') == std::string::npos && reading->text.size() <= 500,
                "a reason is a line");
    }
    if (const auto plan = parsePlan(text, {"tile", "vectorize", "prefetch"}))
        require(!plan->empty() && plan->size() <= 3, "each card once");
    return 0;
}
