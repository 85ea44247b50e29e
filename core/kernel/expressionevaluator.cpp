// SPDX-License-Identifier: GPL-3.0-or-later
// Integers stay exact 64-bit integers as long as every operand is one; a double anywhere makes the result a
// double.
#include "core/base/suggest.h"
#include "core/kernel/expressionnode.h"

#include <bit>
#include <cmath>
#include <limits>

namespace klineage::kernel {

namespace {

using Node = Expression::Node;
using Outcome = tl::expected<Value, ExpressionProblem>;
using std::int64_t;

tl::unexpected<ExpressionProblem> problem(const Node &node, std::string message)
{
    return tl::unexpected(ExpressionProblem{node.column, std::move(message)});
}

constexpr const char *overflowMessage = "the result does not fit in 64 bits.";
constexpr const char *divisionByZero = "division by zero.";

double asReal(const Value &value)
{
    return std::visit([](auto v) { return static_cast<double>(v); }, value);
}

bool isTrue(const Value &value)
{
    return std::visit([](auto v) { return v != 0; }, value);
}

int64_t floorDivide(int64_t a, int64_t b)
{
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Outcome finite(const Node &node, double value)
{
    if (!std::isfinite(value))
        return problem(node, "the result is not a finite number.");
    return value;
}

/// a op b for + - * on integers.
Outcome exact(const Node &node, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool overflow = false;
    if (node.operation == Operation::Add)
        overflow = __builtin_add_overflow(a, b, &result);
    else if (node.operation == Operation::Subtract)
        overflow = __builtin_sub_overflow(a, b, &result);
    else
        overflow = __builtin_mul_overflow(a, b, &result);
    if (overflow)
        return problem(node, overflowMessage);
    return result;
}

Outcome divideIntegers(const Node &node, int64_t a, int64_t b)
{
    if (b == 0)
        return problem(node, divisionByZero);
    if (b == -1) { // the only quotient that can overflow, and a hardware trap for the remainder
        if (node.operation == Operation::Remainder)
            return int64_t{0};
        return a == std::numeric_limits<int64_t>::min() ? problem(node, overflowMessage) : Outcome(-a);
    }
    if (node.operation == Operation::Divide)
        return floorDivide(a, b);
    const int64_t rest = a % b; // the product of quotient and b may not fit where the remainder does
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Outcome arithmetic(const Node &node, const Value &a, const Value &b)
{
    const auto *x = std::get_if<int64_t>(&a);
    const auto *y = std::get_if<int64_t>(&b);
    const bool integers = x && y;
    switch (node.operation) {
    case Operation::Divide:
    case Operation::Remainder:
        if (integers)
            return divideIntegers(node, *x, *y);
        if (node.operation == Operation::Remainder)
            return problem(node, "'%' needs whole numbers on both sides.");
        if (asReal(b) == 0)
            return problem(node, divisionByZero);
        return finite(node, asReal(a) / asReal(b));
    case Operation::Add:
        return integers ? exact(node, *x, *y) : finite(node, asReal(a) + asReal(b));
    case Operation::Subtract:
        return integers ? exact(node, *x, *y) : finite(node, asReal(a) - asReal(b));
    default:
        return integers ? exact(node, *x, *y) : finite(node, asReal(a) * asReal(b));
    }
}

Value compare(const Node &node, const Value &a, const Value &b)
{
    const auto decide = [&node](auto x, auto y) {
        switch (node.operation) {
        case Operation::Less:
            return x < y;
        case Operation::LessOrEqual:
            return x <= y;
        case Operation::Greater:
            return x > y;
        case Operation::GreaterOrEqual:
            return x >= y;
        case Operation::Equal:
            return x == y;
        default:
            return x != y;
        }
    };
    const auto *x = std::get_if<int64_t>(&a);
    const auto *y = std::get_if<int64_t>(&b);
    const bool result = x && y ? decide(*x, *y) : decide(asReal(a), asReal(b));
    return int64_t{result ? 1 : 0};
}

Outcome wholeDivision(const Node &node, const Value &a, const Value &b)
{
    const auto *x = std::get_if<int64_t>(&a);
    const auto *y = std::get_if<int64_t>(&b);
    const bool ceilDiv = node.operation == Operation::CeilDiv;
    const std::string name = ceilDiv ? "'ceil_div'" : "'round_up'";
    if (!x || !y)
        return problem(node, name + " needs whole numbers.");
    if (*y == 0)
        return problem(node, divisionByZero);
    if (*y < 0)
        return problem(node, name + " needs a positive divisor; got " + std::to_string(*y) + '.');
    const int64_t quotient = floorDivide(*x, *y) + (*x % *y != 0 ? 1 : 0);
    int64_t rounded = 0;
    if (ceilDiv)
        return quotient;
    if (__builtin_mul_overflow(quotient, *y, &rounded))
        return problem(node, overflowMessage);
    return rounded;
}

Outcome pow2Ceil(const Node &node, const Value &value)
{
    const auto *x = std::get_if<int64_t>(&value);
    if (!x)
        return problem(node, "'pow2_ceil' needs a whole number.");
    if (*x > int64_t{1} << 62)
        return problem(node, overflowMessage);
    return *x <= 1 ? int64_t{1} : static_cast<int64_t>(std::bit_ceil(static_cast<std::uint64_t>(*x)));
}

Outcome oneValue(const Node &node, const Value &value)
{
    const auto *x = std::get_if<int64_t>(&value);
    switch (node.operation) {
    case Operation::Not:
        return int64_t{isTrue(value) ? 0 : 1};
    case Operation::Negate:
    case Operation::Abs: {
        if (!x)
            return node.operation == Operation::Abs ? std::fabs(asReal(value)) : -asReal(value);
        if (*x == std::numeric_limits<int64_t>::min())
            return problem(node, overflowMessage);
        return node.operation == Operation::Abs && *x >= 0 ? *x : -*x;
    }
    case Operation::Sqrt:
    case Operation::Rsqrt:
        if (asReal(value) < 0)
            return problem(node, "the square root of a negative number.");
        if (node.operation == Operation::Sqrt)
            return std::sqrt(asReal(value));
        if (asReal(value) == 0)
            return problem(node, divisionByZero);
        return finite(node, 1.0 / std::sqrt(asReal(value)));
    case Operation::Log2:
        if (asReal(value) <= 0)
            return problem(node, "the logarithm of a number that is not positive.");
        return std::log2(asReal(value));
    default:
        return pow2Ceil(node, value);
    }
}

Outcome extreme(const Node &node, const Bindings &bindings)
{
    Outcome best = evaluateNode(*node.operands[0], bindings);
    bool integers = best && std::holds_alternative<int64_t>(*best);
    for (std::size_t i = 1; best && i < node.operands.size(); ++i) {
        Outcome next = evaluateNode(*node.operands[i], bindings);
        if (!next)
            return next;
        integers = integers && std::holds_alternative<int64_t>(*next);
        const bool smaller =
            integers ? std::get<int64_t>(*next) < std::get<int64_t>(*best) : asReal(*next) < asReal(*best);
        const bool equal = !integers && asReal(*next) == asReal(*best);
        if (!equal && smaller == (node.operation == Operation::Min))
            best = next;
    }
    if (best && !integers)
        return asReal(*best);
    return best;
}

Outcome lookUp(const Node &node, const Bindings &bindings)
{
    const auto found = bindings.find(node.name);
    if (found == bindings.end()) {
        std::vector<std::string> known;
        for (const auto &binding : bindings)
            known.push_back(binding.first);
        const std::string hint = didYouMean(node.name, known);
        return problem(
            node,
            "the name '" + node.name + "' is unknown"
                + (hint.empty() ? (known.empty() ? "." : "; known are " + quotedList(known) + '.') : hint));
    }
    if (const auto *real = std::get_if<double>(&found->second))
        return finite(node, *real);
    return found->second;
}

/// && and || and ?: look only at what they need, so that "N == 0 ? 1 : M / N" is safe.
Outcome lazily(const Node &node, const Bindings &bindings)
{
    const Outcome first = evaluateNode(*node.operands[0], bindings);
    if (!first)
        return first;
    if (node.operation == Operation::Choose)
        return evaluateNode(*node.operands[isTrue(*first) ? 1 : 2], bindings);
    if (isTrue(*first) == (node.operation == Operation::Or))
        return int64_t{isTrue(*first) ? 1 : 0};
    const Outcome second = evaluateNode(*node.operands[1], bindings);
    if (!second)
        return second;
    return int64_t{isTrue(*second) ? 1 : 0};
}

} // namespace

tl::expected<Value, ExpressionProblem> evaluateNode(const Node &node, const Bindings &bindings)
{
    switch (node.operation) {
    case Operation::Constant:
        return node.constant;
    case Operation::Name:
        return lookUp(node, bindings);
    case Operation::And:
    case Operation::Or:
    case Operation::Choose:
        return lazily(node, bindings);
    case Operation::Min:
    case Operation::Max:
        return extreme(node, bindings);
    default:
        break;
    }
    const Outcome first = evaluateNode(*node.operands[0], bindings);
    if (!first || node.operands.size() == 1)
        return first ? oneValue(node, *first) : first;
    const Outcome second = evaluateNode(*node.operands[1], bindings);
    if (!second)
        return second;
    switch (node.operation) {
    case Operation::Add:
    case Operation::Subtract:
    case Operation::Multiply:
    case Operation::Divide:
    case Operation::Remainder:
        return arithmetic(node, *first, *second);
    case Operation::CeilDiv:
    case Operation::RoundUp:
        return wholeDivision(node, *first, *second);
    default:
        return compare(node, *first, *second);
    }
}

} // namespace klineage::kernel
