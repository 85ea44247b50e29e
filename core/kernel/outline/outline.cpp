// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/outline.h"

#include "core/base/identifier.h"
#include "core/kernel/outline/parameters.h"

#include <algorithm>
#include <charconv>

namespace klineage::kernel {

namespace {

constexpr std::size_t maxLoopHead = 256; ///< tokens that are looked at …
constexpr int maxLoops = 256;            ///< … in so many loops of a kernel

/// An integer literal of any base C has, with its suffix.
std::optional<std::int64_t> integerOf(std::string_view text)
{
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    std::int64_t value = 0;
    const char *end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, value, base);
    const bool isSuffix = std::all_of(
        stopped, end, [](char c) { return std::string_view("uUlL").find(c) != std::string_view::npos; });
    return problem == std::errc() && isSuffix && !text.empty() ? std::optional(value) : std::nullopt;
}

/// Of a macro's body: a number, perhaps in parentheses.
std::optional<std::int64_t> constantOf(TokenSpan body)
{
    while (body.size() > 2 && body.front().is("(") && body.back().is(")"))
        body = body.subspan(1, body.size() - 2);
    if (body.size() == 1 && body[0].kind == CodeToken::Kind::Number)
        return integerOf(body[0].text);
    return std::nullopt;
}

class OutlineReader
{
public:
    OutlineReader(const CodeScan &scan, const Dialect &dialect)
        : m_tokens(scan.tokens)
        , m_dialect(dialect)
    {
        for (const CodeMacro &macro : scan.macros)
            m_aliases[macro.name] = macro.body;
    }

    void read(SourceOutline &outline)
    {
        for (std::size_t i = 0; i < m_tokens.size(); ++i) {
            if (m_tokens[i].is("{"))
                i = openBrace(i);
            else if (m_tokens[i].is("}"))
                closeBrace();
            else if (m_tokens[i].is("typedef") || m_tokens[i].is("using"))
                i = readAlias(i);
            else if (isKernelWord(i))
                i = readKernel(i, outline);
        }
    }

private:
    [[nodiscard]] const CodeToken *at(std::size_t i) const
    {
        return i < m_tokens.size() ? &m_tokens[i] : nullptr;
    }
    [[nodiscard]] bool isAt(std::size_t i, std::string_view text) const
    {
        return i < m_tokens.size() && m_tokens[i].is(text);
    }

    [[nodiscard]] bool isKeyword(std::string_view word) const
    {
        return word == m_dialect.kernelWord || (!word.empty() && word == m_dialect.shortWord);
    }
    /// The keyword, or a macro with it.
    [[nodiscard]] bool isKernelWord(std::size_t i) const
    {
        const CodeToken &token = m_tokens[i];
        if (!token.isWord())
            return false;
        if (isKeyword(token.text))
            return true;
        const auto alias = m_aliases.find(token.text);
        return alias != m_aliases.end()
               && std::any_of(alias->second.begin(), alias->second.end(),
                              [this](const CodeToken &inner) { return isKeyword(inner.text); });
    }

    /// Past the parenthesis, brace or bracket that closes the one at i.
    [[nodiscard]] std::size_t pastClosing(std::size_t i, std::string_view open, std::string_view close) const
    {
        int depth = 0;
        for (; i < m_tokens.size(); ++i) {
            depth += m_tokens[i].is(open) ? 1 : m_tokens[i].is(close) ? -1 : 0;
            if (depth == 0)
                return i + 1;
        }
        return m_tokens.size();
    }

    /// The first token of what the one at i belongs to.
    [[nodiscard]] std::size_t declarationBegin(std::size_t i) const
    {
        while (i > 0 && !m_tokens[i - 1].is(";") && !m_tokens[i - 1].is("}") && !m_tokens[i - 1].is("{"))
            --i;
        return i;
    }

    /// Goes into namespaces and linkage blocks, and over everything else in braces. Returns the last token that is done with.
    std::size_t openBrace(std::size_t i)
    {
        const std::size_t begin = declarationBegin(i);
        const TokenSpan head = TokenSpan(m_tokens).subspan(begin, i - begin);
        const auto has = [head](std::string_view word) {
            return std::any_of(head.begin(), head.end(), [word](const CodeToken &t) { return t.is(word); });
        };
        const bool isLinkage = head.size() == 2 && head[0].is("extern") && head[1].is("\"C\"");
        if (!isLinkage && !has("namespace"))
            return pastClosing(i, "{", "}") - 1;
        m_scopes.push_back(isLinkage);
        return i;
    }

    void closeBrace()
    {
        if (!m_scopes.empty())
            m_scopes.pop_back();
    }

    /// `typedef float T;` and `using T = float;`
    std::size_t readAlias(std::size_t i)
    {
        std::size_t end = i + 1;
        while (end < m_tokens.size() && !m_tokens[end].is(";") && !m_tokens[end].is("{")
               && end - i < maxOutlineParameters)
            ++end;
        if (!isAt(end, ";"))
            return i;
        if (m_tokens[i].is("typedef") && end - i > 2 && m_tokens[end - 1].isWord())
            m_aliases[m_tokens[end - 1].text] = {m_tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                                 m_tokens.begin() + static_cast<std::ptrdiff_t>(end) - 1};
        if (m_tokens[i].is("using") && end - i > 3 && isAt(i + 2, "="))
            m_aliases[m_tokens[i + 1].text] = {m_tokens.begin() + static_cast<std::ptrdiff_t>(i) + 3,
                                               m_tokens.begin() + static_cast<std::ptrdiff_t>(end)};
        return end;
    }

    /// The value of a launch attribute's argument: a number, or a macro that is one; 0 otherwise.
    [[nodiscard]] std::int64_t valueAt(std::size_t i) const
    {
        const CodeToken *token = at(i);
        if (!token)
            return 0;
        if (token->kind == CodeToken::Kind::Number)
            return integerOf(token->text).value_or(0);
        const auto alias = m_aliases.find(token->text);
        return alias == m_aliases.end() ? 0 : constantOf(alias->second).value_or(0);
    }

    /// __launch_bounds__(256, 2), __attribute__((reqd_work_group_size(64, 1, 1))): the parentheses begin at i.
    std::size_t readAttribute(std::size_t i, std::string_view word, KernelFunction &kernel) const
    {
        const std::size_t end = pastClosing(i, "(", ")");
        if (word == "__launch_bounds__")
            kernel.block[0] = valueAt(i + 1);
        for (std::size_t k = i; k < end; ++k) {
            if (!m_tokens[k].is("reqd_work_group_size"))
                continue;
            for (std::size_t d = 0; d < 3; ++d)
                kernel.block[d] = valueAt(k + 2 + 2 * d);
        }
        return end;
    }

    [[nodiscard]] std::string problemOf(std::size_t keyword, std::size_t name) const
    {
        const std::size_t begin = declarationBegin(keyword);
        bool isC = std::any_of(m_scopes.begin(), m_scopes.end(), [](bool linkage) { return linkage; });
        bool isTemplate = false;
        for (std::size_t i = begin; i < name; ++i) {
            isC |= m_tokens[i].is("\"C\"");
            isTemplate |= m_tokens[i].is("template");
        }
        const auto alias = m_aliases.find(m_tokens[keyword].text);
        if (alias != m_aliases.end())
            isC |= std::any_of(alias->second.begin(), alias->second.end(),
                               [](const CodeToken &t) { return t.is("\"C\""); });
        if (isTemplate)
            return "It is a template, which has no name to launch it by: add an extern \"C\" kernel that calls it.";
        if (m_dialect.needsCLinkage && !isC)
            return "It has no C linkage, so its name in the binary is another: write extern \"C\" before "
                   + std::string(m_dialect.kernelWord) + ".";
        return {};
    }

    std::size_t readKernel(std::size_t keyword, SourceOutline &outline)
    {
        KernelFunction kernel;
        std::size_t i = keyword + 1;
        std::size_t name = 0;
        for (; i < m_tokens.size(); ++i) {
            if (m_tokens[i].is(";") || m_tokens[i].is("{") || m_tokens[i].is("}"))
                return i - 1;
            if (!m_tokens[i].is("("))
                continue;
            const std::string_view before = m_tokens[i - 1].text;
            if (before.starts_with("__") && before.ends_with("__")) {
                i = readAttribute(i, before, kernel) - 1;
            } else {
                name = i - 1;
                break;
            }
        }
        if (name == 0 || !m_tokens[name].isWord() || name == keyword)
            return i;
        kernel.name = m_tokens[name].text;
        kernel.line = m_tokens[name].line;
        kernel.problem = problemOf(keyword, name);
        for (std::size_t k = declarationBegin(keyword); k < keyword; ++k) { // attributes may come first
            if (m_tokens[k].is("__attribute__"))
                (void)readAttribute(k + 1, "__attribute__", kernel);
        }
        if (!isIdentifier(kernel.name))
            kernel.problem = "Its name is longer than a plan can hold.";
        const std::size_t close = pastClosing(i, "(", ")");
        readParameters(i + 1, close - 1, kernel);
        i = close;
        while (i < m_tokens.size() && !m_tokens[i].is("{") && !m_tokens[i].is(";")) {
            const bool isAttribute = m_tokens[i].isWord() && isAt(i + 1, "(");
            i = isAttribute ? readAttribute(i + 1, m_tokens[i].text, kernel) : i + 1;
        }
        if (!isAt(i, "{")) // declared, not defined
            return i;
        const std::size_t end = pastClosing(i, "{", "}");
        readBody(i, end, kernel);
        add(std::move(kernel), outline);
        return end - 1;
    }

    static void add(KernelFunction kernel, SourceOutline &outline)
    {
        auto &kernels = outline.kernels;
        const bool isKnown = std::any_of(kernels.begin(), kernels.end(),
                                         [&](const KernelFunction &k) { return k.name == kernel.name; });
        if (isKnown)
            outline.notices.push_back("Line " + std::to_string(kernel.line) + " defines " + kernel.name
                                      + " again; the first one is shown.");
        else if (kernels.size() == maxOutlineKernels)
            outline.notices.push_back("The kernel " + kernel.name + " was left out: there are more than "
                                      + std::to_string(maxOutlineKernels) + '.');
        else
            kernels.push_back(std::move(kernel));
    }

    void readParameters(std::size_t i, std::size_t end, KernelFunction &kernel) const
    {
        const auto put = [&](std::size_t from, std::size_t to) {
            const TokenSpan tokens = TokenSpan(m_tokens).subspan(from, to - from);
            if (tokens.empty() || (tokens.size() == 1 && tokens[0].is("void")))
                return;
            if (kernel.parameters.size() == maxOutlineParameters)
                kernel.problem = "It has more parameters than a plan can pass.";
            else
                kernel.parameters.push_back(readParameter(tokens, m_aliases));
        };
        int depth = 0;
        std::size_t begin = i;
        for (; i < end; ++i) {
            const std::string_view text = m_tokens[i].text;
            depth += text == "(" || text == "<" || text == "["   ? 1
                     : text == ")" || text == ">" || text == "]" ? -1
                                                                 : 0;
            if (depth == 0 && text == ",") {
                put(begin, i);
                begin = i + 1;
            }
        }
        put(begin, std::max(begin, end));
    }

    [[nodiscard]] bool isParameter(std::size_t i, const KernelFunction &kernel) const
    {
        const CodeToken *token = at(i);
        return token
               && std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                              [token](const KernelParameter &p) { return token->is(p.name); });
    }

    /// Which dimensions of the grid and of a block the body asks for.
    void readBody(std::size_t i, std::size_t end, KernelFunction &kernel) const
    {
        bool asksGlobal = false;
        bool multiplies = false;
        int loops = 0;
        for (; i < end; ++i) {
            const std::string_view word = m_tokens[i].text;
            const bool isCall = isAt(i + 1, "(");
            if (word == "for" && isCall && loops++ < maxLoops) {
                int depth = 0;
                for (std::size_t k = i + 1; k < std::min(end, i + maxLoopHead); ++k) {
                    depth += m_tokens[k].is("(") ? 1 : m_tokens[k].is(")") ? -1 : 0;
                    if (depth == 0)
                        break;
                    if (m_tokens[k].isWord() && kernel.loopLimits.size() < maxOutlineParameters)
                        kernel.loopLimits.emplace(m_tokens[k].text);
                }
            }
            const int asked =
                isCall ? 1 + static_cast<int>(std::clamp<std::int64_t>(valueAt(i + 2), 0, 2)) : 1;
            const bool asks = m_dialect.indicesAreCalls && isCall;
            if (asks && (word == "get_global_id" || word == "get_group_id" || word == "get_num_groups"))
                kernel.gridRank = std::max(kernel.gridRank, asked);
            if (asks && word == "get_local_id")
                kernel.blockRank = std::max(kernel.blockRank, asked);
            asksGlobal |= asks && word == "get_global_id" && asked == 1;
            if (!m_dialect.indicesAreCalls && isAt(i + 1, ".") && at(i + 2)) {
                const int rank = isAt(i + 2, "z") ? 3 : isAt(i + 2, "y") ? 2 : 1;
                if (word == "blockIdx" || word == "gridDim")
                    kernel.gridRank = std::max(kernel.gridRank, rank);
                if (word == "threadIdx" || word == "blockDim")
                    kernel.blockRank = std::max(kernel.blockRank, rank);
                // blockIdx.x * blockDim.x, either way round; or * a constant of the code. * a parameter goes to a block's row.
                if (word == "blockIdx" && rank == 1)
                    multiplies |= (isAt(i + 3, "*") && !isParameter(i + 4, kernel))
                                  || (i > 1 && isAt(i - 1, "*") && !isParameter(i - 2, kernel));
            }
            kernel.usesDynamicShared |=
                word == "extern" && (isAt(i + 1, "__shared__") || isAt(i + 2, "__shared__"));
        }
        kernel.isByElement = asksGlobal || multiplies;
    }

    const std::vector<CodeToken> &m_tokens;
    const Dialect &m_dialect;
    TypeAliases m_aliases;
    std::vector<bool> m_scopes; ///< open namespaces and linkage blocks: whether it is of C
};

} // namespace

SourceOutline outlineSource(std::string_view code, Surface surface)
{
    SourceOutline outline;
    if (!surface->dialect)
        return outline;
    if (code.size() > maxCandidateBytes) {
        outline.notices.push_back("Only the first " + std::to_string(maxCandidateBytes)
                                  + " bytes were read.");
        code = code.substr(0, maxCandidateBytes);
    }
    const CodeScan scan = scanCode(code);
    if (scan.isCut)
        outline.notices.push_back("The end was not read: there are more than " + std::to_string(maxCodeTokens)
                                  + " words and signs.");
    OutlineReader(scan, *surface->dialect).read(outline);
    std::set<std::string_view> seen;
    for (const CodeMacro &macro : scan.macros) {
        const std::optional<std::int64_t> value = constantOf(macro.body);
        if (value && isIdentifier(macro.name) && seen.insert(macro.name).second
            && outline.constants.size() < maxOutlineConstants)
            outline.constants.push_back(
                {std::string(macro.name), *value, macro.line, macro.begin, macro.end, macro.isGuarded});
    }
    return outline;
}

std::string withTunables(std::string_view code, const std::set<std::string> &names, Surface surface)
{
    std::string out;
    std::size_t done = 0;
    const SourceOutline outline = outlineSource(code, surface);
    for (const SourceConstant &constant : outline.constants) {
        if (constant.isGuarded || !names.contains(constant.name))
            continue;
        out += code.substr(done, constant.begin - done);
        out += "#ifndef " + constant.name + '\n'
               + std::string(code.substr(constant.begin, constant.end - constant.begin)) + "\n#endif";
        done = constant.end;
    }
    return out + std::string(code.substr(done));
}

} // namespace klineage::kernel
