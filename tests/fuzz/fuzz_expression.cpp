// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/expression.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::kernel;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {"ceil_div(M, BM)",
                    "round_up(K, 64) * 2 + 1",
                    "K % 8 == 0 && M >= BM || !N",
                    "M > 1 ? rsqrt(K) : log2(2.5e3)",
                    "min(M, max(N, 3), abs(-K)) / pow2_ceil(7)",
                    "((((1))))",
                    "-9223372036854775808 / -1"};
    target.words = {"M",          "N",
                    "K",          "BM",
                    "(",          ")",
                    "(((((((((",  "!",
                    "-",          "+",
                    "*",          "/",
                    "%",          "&&",
                    "||",         "==",
                    "<=",         "?",
                    ":",          ",",
                    "ceil_div(",  "round_up(",
                    "pow2_ceil(", "sqrt(",
                    "log2(",      "9223372036854775807",
                    "1e308",      " "};
    target.runs = 60'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char *>(data), size);
    const Result<Expression> expression = Expression::parse(text);
    if (!expression) {
        requireLocated(expression.error(), "column ");
        return 0;
    }
    require(expression->text() == text, "the text is kept");
    const Bindings few = {{"M", std::int64_t{4096}}, {"N", std::int64_t{0}}, {"K", -0.5}};
    Bindings all = few;
    for (const std::string &name : expression->names())
        all.emplace(name, std::int64_t{7});
    for (const Bindings *bindings : std::initializer_list<const Bindings *>{&few, &all}) {
        const Result<Value> value = expression->evaluate(*bindings);
        const Result<Value> again = Expression::parse(text)->evaluate(*bindings);
        require(value.has_value() == again.has_value() && (!value || *value == *again),
                "evaluation is a function");
        if (!value)
            requireLocated(value.error(), "column ");
        static_cast<void>(expression->evaluateInteger(*bindings));
    }
    return 0;
}
