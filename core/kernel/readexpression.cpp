// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/readexpression.h"

#include "core/base/suggest.h"

namespace klineage::kernel {

Expression parseExpressionAt(const files::TomlTable &table, const files::TomlText &text)
{
    const Result<Expression> expression = Expression::parse(text.text);
    if (!expression)
        table.fail(text.position, expression.error().message);
    return expression.value_or(Expression());
}

Expression readExpression(const files::TomlTable &table, const char *key)
{
    table.require(key);
    return readOptionalExpression(table, key).value_or(Expression());
}

std::optional<Expression> readOptionalExpression(const files::TomlTable &table, const char *key)
{
    const std::optional<files::TomlText> text = table.optionalText(key);
    if (!text)
        return std::nullopt;
    return parseExpressionAt(table, *text);
}

std::vector<Expression> readExpressions(const files::TomlTable &table, const char *key, std::size_t fewest,
                                        std::size_t most)
{
    std::vector<Expression> expressions;
    if (fewest > 0)
        table.require(key);
    if (!table.has(key))
        return expressions;
    const std::vector<files::TomlText> texts = table.texts(key);
    if (texts.size() < fewest || texts.size() > most)
        table.fail(key, "'" + std::string(key) + "' has " + std::to_string(texts.size())
                            + " entries; expected " + std::to_string(fewest) + " to " + std::to_string(most)
                            + ".");
    for (const files::TomlText &text : texts)
        expressions.push_back(parseExpressionAt(table, text));
    return expressions;
}

DType readDType(const files::TomlTable &table, const char *key)
{
    const std::string name = table.string(key);
    const std::optional<DType> dtype = dtypeFromString(name);
    if (!dtype && table.has(key))
        table.fail(key,
                   "'" + name + "' is no element type; expected one of " + quotedList(dtypeNames()) + '.');
    return dtype.value_or(DType::F32);
}

} // namespace klineage::kernel
