// SPDX-License-Identifier: GPL-3.0-or-later
// Host code is read from top to bottom: assignments are remembered as they stand, and a launch takes what is remembered then.
#include "core/kernel/outline/hostlaunches.h"

#include <algorithm>

namespace klineage::kernel {

namespace {

using Tokens = std::span<const CodeToken>;

constexpr std::size_t mostExpressionTokens = 256;

bool isThree(Tokens tokens, std::size_t i, std::string_view sign)
{
    return i + 2 < tokens.size() && tokens[i].is(sign) && tokens[i + 1].is(sign) && tokens[i + 2].is(sign);
}

void remember(HostValues &values, std::string_view name, std::string value)
{
    if (values.size() < maxHostValues || values.contains(name))
        values.insert_or_assign(std::string(name), std::move(value));
}

/// Up to the end of a statement or of one of its declarators.
Tokens expressionFrom(Tokens tokens, std::size_t begin)
{
    int depth = 0;
    std::size_t i = begin;
    for (; i < tokens.size() && i - begin < mostExpressionTokens; ++i) {
        depth += tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{")   ? 1
                 : tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}") ? -1
                                                                               : 0;
        if (depth < 0 || (depth == 0 && (tokens[i].is(";") || tokens[i].is(","))))
            break;
    }
    return tokens.subspan(begin, i - begin);
}

class LaunchReader
{
public:
    LaunchReader(Tokens body, const HostValues &globals, std::vector<HostLaunch> &launches)
        : m_body(body)
        , m_values(globals)
        , m_launches(launches)
    {}

    void read()
    {
        for (std::size_t i = 0; i < m_body.size(); ++i) {
            if (isThree(m_body, i, "<")) {
                i = readLaunch(i);
            } else if (m_body[i].is("dim3")) {
                readDimensions(i + 1);
            } else if (m_body[i].isWord() && isSet(i + 1)) {
                remember(m_values, m_body[i].text, textBetween(expressionFrom(m_body, i + 2)));
            } else if (m_body[i].isWord() && i + 3 < m_body.size() && m_body[i + 1].is(".") && isSet(i + 3)) {
                setMember(i);
            }
        }
    }

private:
    /// A single '='.
    [[nodiscard]] bool isSet(std::size_t i) const
    {
        return i + 1 < m_body.size() && m_body[i].is("=") && !m_body[i + 1].is("=");
    }

    /// grid.y = …
    void setMember(std::size_t i)
    {
        const std::string_view member = m_body[i + 2].text;
        const std::size_t d = member == "x" ? 0 : member == "y" ? 1 : member == "z" ? 2 : 3;
        if (d == 3)
            return;
        auto &dimensions = m_dimensions[std::string(m_body[i].text)];
        while (dimensions.size() <= d)
            dimensions.emplace_back("1");
        dimensions[d] = textBetween(expressionFrom(m_body, i + 4));
    }

    /// dim3 a(x, y), b = dim3(x), c{x}, d = x;
    void readDimensions(std::size_t i)
    {
        while (i + 1 < m_body.size() && m_body[i].isWord()) {
            const std::string name(m_body[i].text);
            ++i;
            if (m_body[i].is("(") || m_body[i].is("{")) {
                const std::size_t past = pastClosingSign(m_body, i);
                m_dimensions[name] = textsOf(insideSigns(m_body, i));
                i = past;
            } else if (isSet(i)) {
                const Tokens value = expressionFrom(m_body, i + 1);
                m_dimensions[name] = dimensionsOf(value);
                i += 1 + value.size();
            }
            if (i >= m_body.size() || !m_body[i].is(","))
                return;
            ++i;
        }
    }

    static std::vector<std::string> textsOf(Tokens list)
    {
        std::vector<std::string> texts;
        for (const Tokens part : splitAtCommas(list))
            texts.push_back(textBetween(part));
        return texts;
    }

    /// A dim3 by name or as it is made, else a number of x.
    [[nodiscard]] std::vector<std::string> dimensionsOf(Tokens value) const
    {
        if (value.size() == 1) {
            const auto known = m_dimensions.find(value[0].text);
            if (known != m_dimensions.end())
                return known->second;
        }
        const bool isMade =
            value.size() > 2 && (value[0].is("{") || (value[0].is("dim3") && !value[1].isWord()));
        const std::size_t open = isMade && value[0].is("dim3") ? 1 : 0;
        if (isMade && pastClosingSign(value, open) == value.size())
            return textsOf(insideSigns(value, open));
        return {textBetween(value)};
    }

    /// "k<128, float>" that ends before i: the name and its arguments.
    void readName(std::size_t i, HostLaunch &launch) const
    {
        if (i == 0)
            return;
        std::size_t name = i - 1;
        if (m_body[name].is(">")) {
            int depth = 0;
            std::size_t open = name;
            for (;; --open) {
                depth += m_body[open].is(">") ? 1 : m_body[open].is("<") ? -1 : 0;
                if (depth == 0 || open == 0 || m_body[open].is(";"))
                    break;
            }
            if (depth != 0 || open == 0)
                return;
            launch.templateArguments = textsOf(m_body.subspan(open + 1, name - open - 1));
            name = open - 1;
        }
        if (m_body[name].isWord())
            launch.kernel = m_body[name].text;
    }

    std::size_t readLaunch(std::size_t i)
    {
        HostLaunch launch;
        launch.line = m_body[i].line;
        readName(i, launch);
        std::size_t close = i + 3;
        int depth = 0;
        for (; close < m_body.size() && !(depth == 0 && isThree(m_body, close, ">")); ++close) {
            depth += m_body[close].is("(") || m_body[close].is("{")   ? 1
                     : m_body[close].is(")") || m_body[close].is("}") ? -1
                                                                      : 0;
            if (depth < 0 || m_body[close].is(";"))
                return i + 2;
        }
        const auto configuration =
            splitAtCommas(m_body.subspan(i + 3, std::min(close, m_body.size()) - i - 3));
        const std::size_t open = close + 3;
        if (launch.kernel.empty() || configuration.size() < 2 || open >= m_body.size()
            || !m_body[open].is("("))
            return i + 2;
        launch.grid = dimensionsOf(configuration[0]);
        launch.block = dimensionsOf(configuration[1]);
        if (configuration.size() > 2)
            launch.shared = textBetween(configuration[2]);
        const std::size_t past = pastClosingSign(m_body, open);
        launch.args = textsOf(insideSigns(m_body, open));
        launch.values = m_values;
        for (auto &[name, dimensions] : m_dimensions) {
            const char *const members[] = {".x", ".y", ".z"};
            for (std::size_t d = 0; d < std::min<std::size_t>(dimensions.size(), 3); ++d)
                remember(launch.values, name + members[d], dimensions[d]);
        }
        if (m_launches.size() < maxHostLaunches)
            m_launches.push_back(std::move(launch));
        return past - 1;
    }

    Tokens m_body;
    HostValues m_values;
    std::map<std::string, std::vector<std::string>, std::less<>> m_dimensions;
    std::vector<HostLaunch> &m_launches;
};

} // namespace

HostValues globalValues(const CodeScan &scan)
{
    HostValues values;
    for (const CodeMacro &macro : scan.macros)
        remember(values, macro.name, textBetween(macro.body));
    forEachDeclaration(scan.tokens, [&](const CodeDeclaration &declaration) {
        if (declaration.isFunction)
            return;
        const Tokens tokens =
            Tokens(scan.tokens).subspan(declaration.begin, declaration.end - declaration.begin);
        for (std::size_t i = 1; i + 2 < tokens.size(); ++i) {
            if (tokens[i].isWord() && tokens[i + 1].is("=") && !tokens[i + 2].is("="))
                remember(values, tokens[i].text, textBetween(expressionFrom(tokens, i + 2)));
        }
    });
    return values;
}

void readLaunches(std::span<const CodeToken> body, const HostValues &globals,
                  std::vector<HostLaunch> &launches)
{
    LaunchReader(body, globals, launches).read();
}

} // namespace klineage::kernel
