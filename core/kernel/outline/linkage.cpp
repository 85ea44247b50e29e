// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/linkage.h"

#include "core/base/listtext.h"

#include <algorithm>
#include <set>

namespace klineage::kernel {

namespace {

using Tokens = std::span<const CodeToken>;

constexpr int mostSteps = 8;

bool hasSign(Tokens tokens, std::string_view sign)
{
    return std::any_of(tokens.begin(), tokens.end(), [sign](const CodeToken &t) { return t.is(sign); });
}

/// A host's constant by what it is set to, so that device code can be made with it; other arguments as they are.
std::string constantArgument(const std::string &argument, const HostLaunch &launch)
{
    std::string text = argument;
    for (int step = 0; step < mostSteps; ++step) {
        const auto value = launch.values.find(text);
        if (value == launch.values.end())
            break;
        text = value->second;
    }
    // The type that PyTorch's dispatch macros name: what most of its kernels are tried with.
    return text == "scalar_t" ? "float" : text;
}

/// "int BM, typename T = float": names in order.
struct TemplateParameter {
    std::string name;
    std::string standard; ///< its default; empty: none
};

std::vector<TemplateParameter> templateParameters(Tokens list)
{
    std::vector<TemplateParameter> parameters;
    for (const Tokens part : splitAtCommas(list)) {
        const auto equals =
            std::find_if(part.begin(), part.end(), [](const CodeToken &t) { return t.is("="); });
        if (equals == part.begin() || !std::prev(equals)->isWord())
            return {};
        TemplateParameter parameter{std::string(std::prev(equals)->text), {}};
        if (equals != part.end())
            parameter.standard = textBetween(Tokens(std::next(equals), part.end()));
        parameters.push_back(std::move(parameter));
    }
    return parameters;
}

/// Tokens with the template's parameters replaced, those words left out that only a kernel's parameters may have.
std::string withArguments(Tokens tokens, const std::map<std::string, std::string, std::less<>> &arguments)
{
    std::string text;
    const char *last = nullptr;
    for (const CodeToken &token : tokens) {
        const auto argument = arguments.find(token.text);
        if (last && token.text.data() != last)
            text += ' ';
        text += argument == arguments.end() ? std::string(token.text) : argument->second;
        last = token.text.data() + token.text.size();
    }
    return text;
}

std::string nameOfParameter(Tokens part)
{
    auto end =
        std::find_if(part.begin(), part.end(), [](const CodeToken &t) { return t.is("=") || t.is("["); });
    return end != part.begin() && std::prev(end)->isWord() ? std::string(std::prev(end)->text)
                                                           : std::string();
}

} // namespace

KernelLinkage::KernelLinkage(std::string_view code, const CodeScan &scan,
                             const std::vector<HostLaunch> &launches)
    : m_code(code)
    , m_scan(scan)
    , m_launches(launches)
{}

std::size_t KernelLinkage::offsetOf(std::size_t token) const
{
    return static_cast<std::size_t>(m_scan.tokens[token].text.data() - m_code.data());
}

std::size_t KernelLinkage::endOf(std::size_t token) const
{
    return offsetOf(token) + m_scan.tokens[token].text.size();
}

/// Of tokens and the blank behind them.
CodeEdit KernelLinkage::removal(std::size_t first, std::size_t last) const
{
    const std::size_t end = endOf(last);
    return {offsetOf(first), end + (end < m_code.size() && m_code[end] == ' ' ? 1 : 0), ""};
}

void KernelLinkage::visit(const CodeDeclaration &declaration)
{
    const auto &tokens = m_scan.tokens;
    const Tokens head = Tokens(tokens).subspan(declaration.begin, declaration.body - declaration.begin);
    const auto keyword =
        std::find_if(head.begin(), head.end(), [](const CodeToken &t) { return t.is("__global__"); });
    if (keyword == head.end())
        return;
    const std::size_t at = declaration.begin + static_cast<std::size_t>(keyword - head.begin());
    // The parenthesis of the parameters; attributes have some too.
    std::size_t open = at + 1;
    while (open < declaration.body
           && !(tokens[open].is("(")
                && !(tokens[open - 1].text.starts_with("__") && tokens[open - 1].text.ends_with("__"))))
        open = tokens[open].is("(") ? pastClosingSign(tokens, open) : open + 1;
    if (open >= declaration.body || open == 0 || !tokens[open - 1].isWord())
        return;
    if (head.front().is("template")) {
        if (declaration.isFunction)
            specialize(declaration, at, open - 1, open);
        return;
    }
    if (declaration.isInC || hasSign(head, "\"C\""))
        return;
    // First: of two edits at one place the first one counts, unless it takes nothing away.
    m_edits.push_back({offsetOf(declaration.begin), offsetOf(declaration.begin), "extern \"C\" "});
    for (std::size_t i = declaration.begin; i < at; ++i) {
        if (tokens[i].is("static")) // it would be no symbol
            m_edits.push_back(removal(i, i));
    }
    const std::string name(tokens[open - 1].text);
    if (std::find(m_named.begin(), m_named.end(), name) == m_named.end())
        m_named.push_back(name);
}

/// The template becomes a device function, and the kernel is one of that name that calls it with the arguments of its first launch.
void KernelLinkage::specialize(const CodeDeclaration &declaration, std::size_t keyword, std::size_t name,
                               std::size_t open)
{
    const auto &tokens = m_scan.tokens;
    const std::string kernel(tokens[name].text);
    const auto launch = std::find_if(m_launches.begin(), m_launches.end(),
                                     [&](const HostLaunch &l) { return l.kernel == kernel; });
    const std::size_t list = declaration.begin + 1;
    if (launch == m_launches.end() || !tokens[list].is("<"))
        return;
    std::size_t close = list;
    for (int depth = 0; close < keyword; ++close) {
        depth += tokens[close].is("<") ? 1 : tokens[close].is(">") ? -1 : 0;
        if (depth == 0)
            break;
    }
    const auto parameters = templateParameters(Tokens(tokens).subspan(list + 1, close - list - 1));
    std::map<std::string, std::string, std::less<>> arguments;
    std::string called;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const bool isGiven = i < launch->templateArguments.size();
        std::string argument =
            isGiven ? constantArgument(launch->templateArguments[i], *launch) : parameters[i].standard;
        if (argument.empty()) // it is deduced from the arguments, which nobody knows here
            return;
        called += (called.empty() ? "" : ", ") + argument;
        arguments[parameters[i].name] = std::move(argument);
    }
    if (parameters.empty())
        return;
    std::string passed;
    std::string taken;
    for (const Tokens part : splitAtCommas(insideSigns(tokens, open))) {
        const std::string parameter = nameOfParameter(part);
        if (parameter.empty() || arguments.contains(parameter))
            return;
        passed += (passed.empty() ? "" : ", ") + parameter;
        taken += (taken.empty() ? "" : ", ") + withArguments(part, arguments);
    }
    // Attributes go to the kernel; "__grid_constant__" is of a kernel's parameter alone.
    std::string attributes;
    for (std::size_t i = keyword + 1; i < name; ++i) {
        if (!tokens[i].is("__launch_bounds__") || !tokens[i + 1].is("("))
            continue;
        const std::size_t past = pastClosingSign(tokens, i + 1);
        attributes += withArguments(Tokens(tokens).subspan(i, past - i), arguments) + ' ';
        m_edits.push_back(removal(i, past - 1));
    }
    const std::size_t pastParameters = pastClosingSign(tokens, open);
    for (std::size_t i = open; i < pastParameters; ++i) {
        if (tokens[i].is("__grid_constant__"))
            m_edits.push_back(removal(i, i));
    }
    for (std::size_t i = close + 1; i < keyword; ++i) {
        if (tokens[i].is("static"))
            m_edits.push_back(removal(i, i));
    }
    const std::string body = kernel + "_body";
    m_edits.push_back({offsetOf(keyword), endOf(keyword), "__device__ __forceinline__"});
    m_edits.push_back({offsetOf(name), endOf(name), body});
    const std::size_t end = endOf(declaration.end - 1);
    m_edits.push_back({end, end,
                       "\n\nextern \"C\" __global__ " + attributes + "void " + kernel + '(' + taken
                           + ")\n{\n    " + body + '<' + called + ">(" + passed + ");\n}"});
    m_specialized.push_back(kernel + '<' + called + '>');
}

void KernelLinkage::openUnnamedSpaces()
{
    const auto &tokens = m_scan.tokens;
    for (std::size_t i = 0; i + 1 < tokens.size() && !(m_named.empty() && m_specialized.empty()); ++i) {
        if (!tokens[i].is("namespace") || !tokens[i + 1].is("{"))
            continue;
        m_edits.push_back({offsetOf(i), endOf(i), "inline namespace unnamed"});
        m_opened = true;
    }
}

std::vector<std::string> KernelLinkage::notices() const
{
    std::vector<std::string> said;
    if (m_opened)
        said.emplace_back("Unnamed namespaces have a name now: a kernel in one has none outside of it.");
    if (!m_named.empty())
        said.push_back("A plan launches kernels by their names: " + joined(m_named)
                       + (m_named.size() == 1 ? " is" : " are") + " extern \"C\" now.");
    for (const std::string &kernel : m_specialized)
        said.push_back("The template is launched as " + kernel + ": a kernel that calls it was added.");
    return said;
}

} // namespace klineage::kernel
