// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/expression.h"

#include "core/kernel/expressionnode.h"

#include <cmath>

namespace klineage::kernel {

namespace {

constexpr std::size_t longestQuoted = 1000;

void collectNames(const Expression::Node &node, std::set<std::string> *names)
{
    if (node.operation == Operation::Name)
        names->insert(node.name);
    for (const auto &operand : node.operands)
        collectNames(*operand, names);
}

} // namespace

Error expressionError(const std::string &text, const ExpressionProblem &problem)
{
    return Error{ErrorCode::InvalidInput,
                 "column " + std::to_string(problem.column) + " of '" + text + "': " + problem.message,
                 {}};
}

Expression::Expression()
    : Expression(std::int64_t{0})
{}

Expression::Expression(std::int64_t constant)
    : m_text(std::to_string(constant))
{
    auto node = std::make_shared<Node>();
    node->constant = constant;
    m_root = std::move(node);
}

Result<Expression> Expression::parse(std::string_view text)
{
    auto root = parseExpression(text);
    if (!root) {
        const std::string quoted(text.substr(0, longestQuoted)); // an over-long text is not repeated
        return tl::unexpected(expressionError(quoted, root.error()));
    }
    Expression expression;
    expression.m_text = text;
    expression.m_root = std::move(*root);
    return expression;
}

Result<Value> Expression::evaluate(const Bindings &bindings) const
{
    const auto value = evaluateNode(*m_root, bindings);
    if (!value)
        return tl::unexpected(expressionError(m_text, value.error()));
    return *value;
}

Result<std::int64_t> Expression::evaluateInteger(const Bindings &bindings) const
{
    const Result<Value> value = evaluate(bindings);
    if (!value)
        return tl::unexpected(value.error());
    if (const auto *integer = std::get_if<std::int64_t>(&*value))
        return *integer;
    const double real = std::get<double>(*value);
    // 2^63 is exact as a double; every whole double below it fits.
    constexpr double limit = 9223372036854775808.0;
    if (real != std::floor(real) || real < -limit || real >= limit)
        return tl::unexpected(expressionError(
            m_text, {1, "the value " + std::to_string(real) + " is not a whole number of 64 bits."}));
    return static_cast<std::int64_t>(real);
}

Result<double> Expression::evaluateReal(const Bindings &bindings) const
{
    const Result<Value> value = evaluate(bindings);
    if (!value)
        return tl::unexpected(value.error());
    return std::visit([](auto v) { return static_cast<double>(v); }, *value);
}

std::set<std::string> Expression::names() const
{
    std::set<std::string> names;
    collectNames(*m_root, &names);
    return names;
}

} // namespace klineage::kernel
